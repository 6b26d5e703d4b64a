"""Runnable jobs: they compose transforms, and own the command line."""
