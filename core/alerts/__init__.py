"""Rules on rows, and the alerts that they open and close.

`rules` has the grammar of a rule. `table` (`AlertTable`) applies rules to rows; `watch` decides for one
rule and one model. `rows` are the alerts as rows, `messages` their words.
"""
