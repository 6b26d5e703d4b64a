#!/bin/sh
# A nightly job over 200 models: evaluates one day's file, goes on from the state of the night before, and writes a
# table of the models, worst first, and a report of all nights.
#
#     python examples/make_data.py data
#     sh examples/nightly.sh data/day1.csv work
#     sh examples/nightly.sh data/day2.csv work
#
# If a command fails, or more than 1% of the records are no events, the job ends there with that command's exit
# status. The state is then that of the night before, so the same night can be run again.
set -eu
day=$1 work=$2
name=$(basename "$day" .csv)
mkdir -p "$work/rows"

set -- "$day" --time time --window last:200 --every 50
if [ -e "$work/state/manifest.json" ]; then
    set -- "$@" --import-state "$work/state"
fi
rm -rf "$work/state.new"
rocsteady evaluate "$@" --export-state "$work/state.new" --output "$work/rows/$name.parquet" \
    --dead-letters "$work/$name-rejected.jsonl" --fail-if 'dead_letters > 1%'

# The state of this night takes the place of the state before only now, when the rows are there.
rm -rf "$work/state"
mv "$work/state.new" "$work/state"

rocsteady show "$work"/rows/*.parquet | tee "$work/models.txt"
rocsteady report "$work"/rows/*.parquet --output "$work/report.html"
