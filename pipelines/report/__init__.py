"""`rocsteady report`: rows of measures as one HTML page that needs no network.

`report.write_report` writes the page; `report.report_command` is the command. Read `report` first, then
`html`, which collects the facts that the page shows, and `templates`, which puts them into the templates in
`page`, beside the style and the scripts.

The facts come from `rows` (rows in order, events counted), `data` (what the scripts draw, packed), `measures`
(what every measure means) and `changes` (when a model ranked worst and best). Of comparisons they come from
`comparisons` (what tests over folds found), `better` (a section about that) and `cd_diagram` (a drawing).
"""
