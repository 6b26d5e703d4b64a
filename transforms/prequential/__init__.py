"""Learners on Beam: `prequential` has `Prequential`, `folds` runs the learners, `compare` compares them."""
