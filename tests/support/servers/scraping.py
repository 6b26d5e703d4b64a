"""What `--prometheus` serves, fetched as a monitoring server does."""

from __future__ import annotations

import urllib.error
import urllib.request


def fetched(port):
    """Return numbers as text by the names of their series; None where nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=120) as answer:
            text = answer.read().decode()
    except urllib.error.URLError:
        return None
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
