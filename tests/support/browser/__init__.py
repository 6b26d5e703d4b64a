"""A Chromium on this machine (`chromium`), and the live demo that it looks at (`demo_year`)."""
