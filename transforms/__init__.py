"""Beam PTransforms and DoFns. One public PTransform a module.

Rooms, from the lowest layer up. A room imports only rooms in the lines above its own:

    events, kafka, combine          fields to columns, and dead letters; a topic and its client; CombineFns
    files, beam                     formats of files; the stateful DoFn, metrics, progress
    sinks                           tables, parts, topics
    state                           folders that exports are written to
    sources                         files and streams of events
    evaluate, tables                the evaluation of models; tables of rows that are read back
    prequential                     learners, tested and trained
    yaml_transforms                 the transforms that Beam YAML names: users' pipelines hold its path
"""
