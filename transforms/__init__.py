"""Beam PTransforms and DoFns, in rooms (folders).

The list goes from the lowest layer up. A room imports only rooms in the lines above its own:

    `events`, `kafka`, `combine`    records to columns, and dead letters; a topic and its clients; CombineFns.
    `files`, `beam`                 formats of files; the stateful DoFn, metrics, progress.
    `sinks`                         outputs: files, folders of parts, topics.
    `state`                         exports of state as folders.
    `sources`                       files and streams of events.
    `evaluate`, `tables`            the evaluation of models; readers of written tables.
    `prequential`                   learners, tested and trained.
    `yaml_transforms`               a module: the transforms for Beam YAML. Users' pipelines contain its path.
"""
