"""Many small windows in shared arrays: all models of a packet are applied by one call of a kernel.

`arena` (`Arena`) is the public class, with the evaluators of a shard by number. `places` gives each window
its part of the shared arrays. `follow` has the kernel that applies events and makes rows; `sorting` keeps the
events of a window in order of their scores. `wire` writes and reads the windows of a snapshot.

An arena holds windows of events that count 1 each, with labels 1 and 0, as long as scans of the window are
faster than a tree (`arena.most_events`). All other windows are in `ModelEvaluator`s. Rows are equal to the
last bit. The room imports the rooms `evaluator`, `measures`, `rows` and those below them.
"""
