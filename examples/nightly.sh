#!/bin/sh
# A nightly job over 200 models: evaluates one day's file, goes on from the state of the night before, and writes a
# table of the models, worst first, and a report of all nights.
#
#     python examples/make_data.py data
#     sh examples/nightly.sh data/day1.csv work
#     sh examples/nightly.sh data/day2.csv work
#
# If a command fails, or more than 1% of the records are no events, the job ends there with that command's exit
# status. Rows and state are then those of the night before, so the same night can be run again. A night that
# has its rows is not run again: its events are in the state, and would be late.
set -eu
day=${1:?the file of a day, then the folder of the job} work=${2:?the folder of the job}
name=$(basename "$day" .csv)
mkdir -p "$work/rows"
if [ -e "$work/rows/$name.parquet" ]; then
    echo "$name has its rows in $work/rows" >&2
    exit 2
fi

set -- "$day" --time time --window last:200 --every 50
if [ -e "$work/state/manifest.json" ]; then
    set -- "$@" --import-state "$work/state"
fi
rm -rf "$work/state.new"
rocsteady evaluate "$@" --export-state "$work/state.new" --output "$work/rows.new.parquet" \
    --dead-letters "$work/$name-rejected.jsonl" --fail-if 'dead_letters > 1%'

# The rows of this night get their name, and its state the place of the state before, only now that both are whole.
mv "$work/rows.new.parquet" "$work/rows/$name.parquet"
rm -rf "$work/state"
mv "$work/state.new" "$work/state"

rocsteady show "$work"/rows/*.parquet | tee "$work/models.txt"
rocsteady report "$work"/rows/*.parquet --output "$work/report.html"
