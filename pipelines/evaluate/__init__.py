"""`rocsteady evaluate`: turns files or streams into rows, a report and alerts.

`command` runs the command: `parser` and `options` read the command line into a `job`, whose counters decide
the `exit_status`. `on_beam` makes a Beam pipeline of the job, and `counted` runs the pipeline and reads its
counters; `live` runs the job in this process. Live inputs are `streams`: topics, stdin, or growing folders,
with labels of their own too. `take_up` checks the state that a job starts from, and `checkpoints` reads the
options on checkpoints. `pairs` compares models with a champion, and `roll_ups` makes roll-up rows. `summary`
reports on the job, `losses` on dead letters if there are many, and `page` writes the page about the job.
`delivery` calls the commands and URLs of `recipients` for the alerts of the job.
"""
