"""Roll-ups: what the rows of many models, or of the slices of a model, say together.

`settings` has the choice of groups and the other settings, `formulas` computes the numbers of a roll-up row.
`gaps` has the gaps between slices of many models, for a page.
`members` packs rows of measures for their groups, and `table` (`FleetTable`) makes roll-up rows of them:
`group` has the state of one group, and `surely` names the members that are surely below a bound.
"""
