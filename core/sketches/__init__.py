"""AUC in little memory, with bounds on the error.

`auc_sketch` (`AucSketch`) counts events in `cells` of scores; `wire` reads and writes its bytes.
`compressed_auc` keeps Tatti's compressed list (`compressed_list`) beside a tree. `threshold_queries`
estimates the AUC by few queries. `approximate_h` approximates the H-measure. Sources: Tatti 2018 and 2021.
"""
