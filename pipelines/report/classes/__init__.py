"""The classes of models with a score of each class: on the page, a class is shown like a slice of its model.

`page_classes` has the classes of the page's rows.
"""
