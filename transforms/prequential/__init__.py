"""Learners on Beam: `prequential` has `Prequential`; `folds` runs the learners and compares them."""
