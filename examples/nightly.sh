#!/bin/sh
# A nightly job over 200 models: evaluates one day's file, goes on from the state of the night before, and writes a
# table of the models, worst first, and a report of all nights.
#
#     python examples/make_data.py data
#     sh examples/nightly.sh data/day1.csv work
#     sh examples/nightly.sh data/day2.csv work
#
# If a command fails, or more than 1% of the records are no events or are late, the job ends there with that
# command's exit status. State and rows are then those of the night before, so the same night can be run again. A
# night that is in the state already is refused so: all of its events are late.
set -eu
day=${1:?the file of a day, then the folder of the job} work=${2:?the folder of the job}
name=$(basename "$day" .csv)
mkdir -p "$work/rows"
if [ ! -e "$work/state" ] && [ -e "$work/before" ]; then
    mv "$work/before" "$work/state" # a night was stopped between the two moves below
fi

set -- "$day" --time time --window last:200 --every 50
if [ -e "$work/state/manifest.json" ]; then
    set -- "$@" --import-state "$work/state"
fi
rm -rf "$work/new"
mkdir "$work/new"
rocsteady evaluate "$@" --export-state "$work/new/state" --output "$work/new/rows.parquet" \
    --dead-letters "$work/$name-rejected.jsonl" --fail-if 'dead_letters > 1%' --fail-if 'late > 1%'

# Rows and state of this night take their places only now, when all is written.
mv "$work/new/rows.parquet" "$work/rows/$name.parquet"
rm -rf "$work/before"
if [ -e "$work/state" ]; then mv "$work/state" "$work/before"; fi
mv "$work/new/state" "$work/state"
rm -rf "$work/before"

rocsteady show "$work"/rows/*.parquet >"$work/models.txt"
cat "$work/models.txt"
rocsteady report "$work"/rows/*.parquet --output "$work/report.html"
