"""The report's sections on many models: gaps between slices, roll-ups of groups, champion and challengers.

`gaps` has the slices of each model by their gap to the other slices, from the rows of the page. `roll_ups`
and `pairs` have the sections on roll-up rows and on rows of pairs. `class_pairs` has the section on the pairs
of classes of one model. `tables` cuts such rows into series, and
`lines` has what the tables of the three sections share.
"""
