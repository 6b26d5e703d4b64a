"""The version of the package. `pyproject.toml` has the same version, and a test compares the two."""

__version__ = "0.1.0"
