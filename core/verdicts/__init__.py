"""Verdicts on rows: which models and slices rank worse or better than they did, since when, how surely.

`judge` gives the verdicts of a page. It compares the latest window of a series (`series`) with its earlier
windows (`reference`; users name other references by `choice`), and finds when the change began (`since`).
"""
