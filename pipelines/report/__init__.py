"""`rocsteady report`: rows of measures as one HTML page that needs no network.

`report.write_report` writes the page; `command` is the command. Read `facts` first. It collects the facts
that the page shows, and `render` puts them into the templates in `page`, beside the style and the scripts.

The facts come from `report_rows` (rows in order, events counted; `classes` has the classes of rows), `data`
(the charts' data, packed, and the meaning of every measure), `verdicts` (which models changed, since when),
`overview` with `sparkline` (a line for each model), `heatmap` (models by slices), `alerts` (openings and
closings, paired) and `changes` (when a model ranked worst and best). The facts about learners come from
`comparisons` (results of tests over folds), `better` (their section) and `cd_diagram` (their drawing).

`glance` is the table of models that `rocsteady show` prints in a terminal.
"""
