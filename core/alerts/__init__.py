"""Rules on rows, and the alerts that they open and close.

`rules` has the grammar of a rule. `table` (`AlertTable`) applies rules to rows; `watch` decides for one
rule and one model. `rows` has the records of rows and alerts, `messages` the messages of alerts.
"""
