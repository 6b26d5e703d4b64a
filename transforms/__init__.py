"""Beam PTransforms and DoFns. One public PTransform per file."""
