"""`rocsteady demo`: flights of New York, models that predict delays, a report.

`command` runs it. `flights` reads the data, `models` and `learners` train, `streams` makes the files of
events.
"""
