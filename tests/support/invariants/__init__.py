"""Claims that hold after every action, and the drivers that act.

`score_tree`, `weighted_tree` and `compressed_auc` compute all numbers of a structure anew. `sliding_window`
drives the tree; `helpers_called` and `kernel_modes` run kernels interpreted. `simulator`, with
`simulated_machines` and `hash_chain`, fails work as a runner may; `broken_protocols` shows that the
simulator notices. `cuts` cuts jobs of many shards anywhere. `combine_runs` merges accumulators. `refusals`
is what every refusal of a setting holds.
"""
