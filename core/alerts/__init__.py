"""Rules on rows, and the alerts that they open and close.

`rules` has the parts of a rule, `columns` the columns that a rule may name, `grammar` reads a rule from text,
and `rule_sets` has the rules of one table. `surely` has the condition on evidence, with its rate of false
alarms. `table` (`AlertTable`) applies rules to rows: `series` has the state of one model, slice and class,
`rule_state` decides for one rule, and `caps` counts the alerts that were told. `alert_rows` has the records
of rows and alerts, and `messages` writes the messages of alerts.
"""
