"""A receiver of OTLP over HTTP, as a collector has one: it keeps what it decodes."""

from __future__ import annotations

import gzip
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Received:
    """Requests in the order in which they came; `status` is the answer to the next ones."""

    def __init__(self):
        self.requests = []
        self.status = 200

    def newest(self):
        """Return {name: metric} of the newest request, and the attributes of its resource."""
        (of_resource,) = self.requests[-1].resource_metrics
        metrics = {m.name: m for scope in of_resource.scope_metrics for m in scope.metrics}
        return metrics, {a.key: a.value.string_value for a in of_resource.resource.attributes}


def points(metric):
    """Return {labels: value} of a metric; labels are (name, value) pairs."""
    found = (metric.sum if metric.HasField("sum") else metric.gauge).data_points
    return {
        tuple(sorted((a.key, a.value.string_value) for a in point.attributes)): (
            point.as_int if point.HasField("as_int") else point.as_double
        )
        for point in found
    }


@contextmanager
def receiver():
    """Run a receiver; yield its address and what it received."""
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
        ExportMetricsServiceResponse,
    )

    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/metrics"
            assert self.headers["content-type"] == "application/x-protobuf"
            if received.status == 200:
                received.requests.append(ExportMetricsServiceRequest.FromString(body))
            answer = ExportMetricsServiceResponse().SerializeToString()
            self.send_response(received.status)
            self.send_header("content-length", str(len(answer)))
            if received.status in (307, 308):
                self.send_header("location", self.path)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
