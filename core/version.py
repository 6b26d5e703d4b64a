"""The version of the package. `pyproject.toml` has the same version; a test compares both."""

__version__ = "0.1.0"
