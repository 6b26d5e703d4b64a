"""A service that evaluates one model, with a state that outlives the service.

    python examples/service.py state.bin 8080
    curl -d '{"label": 1, "score": 0.9}' http://127.0.0.1:8080   # an event; repeat it with others
    curl http://127.0.0.1:8080                                   # the measures of the window now

The service saves its state after every 1,000 events, and when it is stopped (Ctrl-C or SIGTERM). When it
starts again, it goes on with the same window. It listens on this machine alone.
"""

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import rocsteady as rs

if len(sys.argv) != 3 or not sys.argv[2].isdigit():
    sys.exit(__doc__)
path, port = Path(sys.argv[1]), int(sys.argv[2])
if path.exists():
    try:
        evaluator = rs.ModelEvaluator.from_bytes(path.read_bytes())
    except rs.WireError as error:
        sys.exit(f"{path}: {error}")
else:
    evaluator = rs.ModelEvaluator(window=rs.LastEvents(10_000), every=rs.EveryEvents(1_000))


def save():
    """Write the state beside its place and rename it: a crash leaves the old state or the new one, whole."""
    beside = path.with_suffix(".new")
    beside.write_bytes(evaluator.to_bytes())
    beside.replace(path)


class Handler(BaseHTTPRequestHandler):
    """Take an event by POST, answer with the measures by GET."""

    def do_POST(self):
        """Apply one event. An event that is none is refused, and changes nothing."""
        try:
            event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            rows = evaluator.update([event["label"]], [event["score"]])
        except (ValueError, KeyError, TypeError) as error:  # rs.InputError is a ValueError
            self.answer(400, {"error": str(error)})
            return
        if len(rows):  # a row is due after every 1,000 events
            save()
        self.answer(200, {"applied": 1})

    def do_GET(self):
        """Answer with some measures of the window."""
        now = evaluator.measures()
        names = ["window_events", "auc", "auc_low", "auc_high", "h", "kappa_m", "reason"]
        self.answer(200, {name: getattr(now, name) for name in names})

    def answer(self, status, content):
        """Send JSON."""
        body = json.dumps(content).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
try:
    server = HTTPServer(("127.0.0.1", port), Handler)
except (OSError, OverflowError) as error:
    sys.exit(f"port {port}: {error}")
print(f"process {os.getpid()} listens on http://127.0.0.1:{server.server_port}", flush=True)
try:
    server.serve_forever()
except KeyboardInterrupt:
    save()
