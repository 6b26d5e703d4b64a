"""What users choose, checked once: every other room takes these objects and checks nothing again.

`windows` has the windows and emissions and reads them from text. `settings` has `EvaluatorSettings` (one
model) and `TableSettings` (all models of a job). `shards` says over how many shards the models are spread.
"""
