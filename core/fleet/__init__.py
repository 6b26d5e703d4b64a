"""Roll-ups: the common measures of the rows of many models, or of the slices of a model.

`roll_up_settings` has the choice of groups and the other settings, and `formulas` computes the numbers of a
roll-up row. `gaps` has the gaps between slices of many models, for a page. `members` packs rows of measures
for their groups, and `table` (`FleetTable`) makes roll-up rows of them: `group` has the state of one group,
and `surely` names the members whose AUC is surely below a bound.
"""
