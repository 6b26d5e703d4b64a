"""Tables that a report draws, and the pages that tests read, run and build.

`report_tables`, `class_tables`, `fleet_tables`, `comparison_files`, `fold_reports` and `planted` are rows
for a report. `blocks`, `files` and `runs` take the documentation's code apart and run it; `site_build`
builds the site; `json_schemas` has the schemas of the docs, and `written` writes
all that stands in files and follows from the code. `served` is a served page that is fed by
hand.
"""
