"""More than two classes: AUCs of each class, of each pair of classes, and their means, in a window.

`population` has the masses of the classes, `scan` the kernels that scan the order of a score, `values` the
means of AUCs, and `figures` joins them to the figures of a window with their variances.
"""
