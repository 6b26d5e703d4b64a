"""`rocsteady demo`: flights of New York, models that predict delays, a report.

`command` runs the demo, `live` the page that moves, and `start` does what both begin with. `flights` reads
the data, `models` and `learners` train, `streams` makes the files of events. `landings` makes what `live`
plays, and `played` plays it.
"""
