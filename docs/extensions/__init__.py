"""Sphinx extensions of the documentation site."""

import logging

logging.getLogger("apache_beam").setLevel(logging.WARNING)  # its import tells of missing options
