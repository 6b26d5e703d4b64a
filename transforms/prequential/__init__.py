"""Learners on Beam: `prequential` (`Prequential`) is made of `folds`, and `compare` compares them."""
