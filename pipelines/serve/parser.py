"""The arguments of `rocsteady serve` and `rocsteady watch`, and the ends of their help."""

from __future__ import annotations

from ..arguments import CONFIDENCE, KAFKA_OPTION, OTLP, REFERENCE, TITLE, Argument, repeatable

SERVE_EPILOG = """examples:
  rocsteady serve rows/
  rocsteady serve kafka://localhost:9092/rows --alerts kafka://localhost:9092/alerts
  rocsteady serve rows/ --roll-ups roll_ups/ --pairs pairs/ --curves curves/
  rocsteady serve rows/ --host 0.0.0.0 --token @secret.txt

The page grows as rows come, without a reload. Nothing here can be changed by a request. A browser gives the
token once, at http://HOST:8080/?token=..., and then has a cookie; a script sends Authorization: Bearer ..."""

WATCH_EPILOG = """examples:
  rocsteady watch rows/
  rocsteady watch kafka://localhost:9092/rows --reference 7d
  rocsteady watch rows.jsonl --refresh 60 >> tables.txt

In a terminal q or Ctrl-C ends it. Elsewhere each new table is printed below the one before."""

_SOURCE = Argument("source", "SOURCE",
    "rows as they come: a folder such as rows/, a file of lines such as rows.jsonl, "
    "kafka://host:port/topic",
)  # fmt: skip

SERVE = (
    _SOURCE,
    repeatable("--alerts", "SOURCE", "of evaluate --alerts, followed in the same way; repeatable"),
    repeatable("--roll-ups", "SOURCE", "of evaluate --roll-ups, followed in the same way; repeatable"),
    repeatable("--pairs", "SOURCE", "of evaluate --pairs, followed in the same way; repeatable"),
    repeatable("--curves", "SOURCE", "of evaluate --curves, followed in the same way; repeatable"),
    Argument("--host", "ADDRESS", "where to listen; beyond this machine a --token is needed", "127.0.0.1"),
    Argument("--port", "N", "0: one that is free", "8080"),
    Argument("--token", "@FILE",
        "who may look: a file whose first line is a secret of 16 or more letters, or the secret itself"),
    OTLP,
    Argument("--rows-held", "N", "the most rows of the page: of more, older rows are thinned", "100000"),
    TITLE,
    REFERENCE,
    CONFIDENCE,
    KAFKA_OPTION,
)  # fmt: skip

WATCH = (
    _SOURCE,
    Argument("--refresh", "SECONDS", "between two tables at least", "2"),
    REFERENCE,
    CONFIDENCE,
    KAFKA_OPTION,
)  # fmt: skip
