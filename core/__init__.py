"""The mathematics and the state machines: numpy, numba and scipy, never Apache Beam."""
