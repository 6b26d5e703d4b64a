"""`rocsteady demo`: flights of New York, models that predict delays, a report.

`command` runs the demo. `flights` reads the data, `models` and `learners` train, `streams` makes the files of
events.
"""
