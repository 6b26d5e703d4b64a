"""Rules on rows, and the alerts that they open and close.

`rules` has the parts of a rule, `grammar` reads a rule from text, `rule_sets` has the rules of one table.
`surely` has the condition on evidence, with its rate of false alarms. `table` (`AlertTable`) applies rules to
rows; `watch` decides for one rule and one (model, slice, pane), and `caps` counts the alerts that were told.
`rows` has the records of rows and alerts, and the messages of alerts.
"""
