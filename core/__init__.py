"""The mathematics and the state machines of rocsteady: numpy, numba and scipy, never Apache Beam.

The rooms follow, from the ground up. A room imports only rooms that stand in lines above its own:

    `errors`, `arrays`, `version`   the exceptions that users meet; the types of arrays; the version
    kernels                         how functions are compiled; records and exact sums in kernels
    process                         console, standard streams and temporary folders of a process
    encoding                        bytes: JSON, frames with checksums, fields of a payload
    settings                        what users choose: windows, emissions, costs, shards
    events                          batches of events and labels, their wire forms, what is rejected and why
    ids, rows, shard                hashes of ids; rows of measures; order and state of a shard
    measures                        the measures of a window, one kernel each
    join, alerts, compare           labels that come late; rules on rows; which of two learners is better
    score_tree, learning            the tree of a window without weights; estimators that learn AUC and AUM
    weighted_tree, sketches         the tree of a window with weights; AUC in little memory
    evaluator                       one model: its window, its rows, its state
    table, prequential, river       the models of a shard; learners tested and trained; river's metrics
    state                           exports, imports, other numbers of shards

`tests/core` mirrors these rooms. Start with `evaluator`, and follow its imports down.
"""
