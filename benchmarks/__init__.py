"""Measurements against peers; not installed."""
