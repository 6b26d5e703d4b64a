"""Drift detectors on streams with a drift whose place is known: python -m benchmarks.drift [--quick].

streams      data sets, a drift that is put into them, and predictions of learners before and after the drift
constructed  score streams on which a detector of errors and an alert on the AUC differ by construction
watchers     river's detectors of errors, and adaptive windows and alert rules of this package
runs         every watcher on every stream: its false alarms, detections, delays and cost
tables       what was measured, in tables
sentences    what the figures say, in sentences
page         docs/benchmarks/drift.md
"""
