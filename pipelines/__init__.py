"""Runnable jobs, the command line, and `rocsteady.evaluate` of the room `frames`.

Nothing imports the other rooms but the console script.

`cli` runs one command of the table in `commands`; `arguments` declares their options. `evaluate`,
`prequential`, `demo`, `report`, `serve` and `monitoring` have rooms; `compare`, `inspect`, `replay`,
`roll_up`, `rows`, `show`, `doctor` and `state` are commands of one module. `outputs` checks paths before
anything runs and tidies up after a kill, `stopping` handles signals, `sums` adds up counters, `words` writes
numbers and moments as text.
"""
