"""Events as input of tests, and what carries them.

`batches` of events; `partitions` of a stream, and a partition that is a list (`list_partition`);
`beam_streams` for Beam's TestStream; a folder that grows (`folder_looks`); frames beside files
(`frame_runs`); files behind a URL (`url_files`). `class_events`, `class_predictions` and `class_coverage`
have a score of each class; `weighted_histories` have weights; `roll_up_events` have groups;
`learner_factories` make learners; `times` counts microseconds.
"""
