"""`rocsteady demo`: flights of New York, models that predict delays, a report.

`command` runs the demo, `live` the page that moves, and `start` has the steps with which both begin.
`flights` reads the data, `models` and `learners` train, `streams` makes the files of events. `landings` makes
the stream that `live` plays, and `played` plays it.
"""
