"""Evidence that a model ranks worse than it must: e-detectors, whose rate of false alarms is proven.

`below` has the class (`EvidenceBelow`), its guarantee and the proof. `detector` has its kernel. `reference`
has the bound that a period of the stream gives.
"""
