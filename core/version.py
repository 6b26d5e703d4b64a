"""The version of the package: `pyproject.toml` says the same, and a test compares the two."""

__version__ = "0.1.0"
