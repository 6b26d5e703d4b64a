(() => {
"use strict";
{# Jinja reads the style and the scripts, too: they must not hold its brackets. #}
{% for name in ["fetched" if live else "blocks", "data", "state", "charts", "traces", "ranges", "overview", "heatmap", "class_pairs", "alerts", "better", "lines", "fleet", "over_time",
  "slices", "curves", "table", "paper", "page"] + (["live"] if live else []) %}
{% include name ~ ".js" %}

{% endfor %}
})();
