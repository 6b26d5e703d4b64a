"""`rocsteady prequential`: tests and trains learners on a stream.

`parser` has the options, and `command` reads their values and runs the command.
`columns` finds the features of a source.
"""
