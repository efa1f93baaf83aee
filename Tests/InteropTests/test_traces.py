"""How a join went, step by step, reaches an OpenTelemetry collector."""
import asyncio
import base64
import http.server
import json
import threading
import time

from conftest import running
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from support.aiortc_client import Client, MovingPicture
from support.tokens import token
from support.waiting import PATIENCE_S, until_true


class Collector:
    """Takes OTLP over HTTP; the first requests, as many as `refusals`, are answered 503."""

    def __init__(self, refusals):
        self.requests, self.refusals = [], refusals
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                refuses = collector.refusals > 0
                if refuses:
                    collector.refusals -= 1
                else:
                    collector.requests.append((self.path, self.headers["Content-Type"], json.loads(body)))
                self.send_response(503 if refuses else 200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def spans(self):
        # A batch whose answer came late is sent again as it was.
        bodies = {json.dumps(body, sort_keys=True): body for _, _, body in self.requests}.values()
        return [span for body in bodies for resource in body["resourceSpans"]
                for scope in resource["scopeSpans"] for span in scope["spans"]]


def published(value):
    """A request as OpenTelemetry's published schema has it, which fails on names and types that are not in there.

    The JSON of OTLP is protobuf's but for the ids of traces and spans: they are hexadecimal digits there, and base64 in protobuf's.
    """
    def converted(part):
        if isinstance(part, list):
            return [converted(one) for one in part]
        if not isinstance(part, dict):
            return part
        return {key: base64.b64encode(bytes.fromhex(one)).decode() if key in ("traceId", "spanId", "parentSpanId") else converted(one)
                for key, one in part.items()}

    return json_format.ParseDict(converted(value), ExportTraceServiceRequest())


def test_a_join_is_traced_step_by_step_as_part_of_its_callers_trace():
    """The collector refuses the trace at first, and takes it when it is sent again; a refused join is traced, too."""
    collector = Collector(refusals=1)
    trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

    async def publish(server):
        cam = await Client().publish(f"{server.url}/whip/traced", token("cam", "traced"), MovingPicture(),
                                     headers={"traceparent": f"00-{trace}-{parent}-01"})
        await cam.connected()
        await until_true(lambda: server.api("GET", "/v1/rooms/traced/participants/cam/stats")[1]["tracks"][0]["layers"][0]["keyframesReceived"] > 0,
                         PATIENCE_S, "a keyframe arrives")
        await asyncio.sleep(1)
        await cam.close()

    with running(extra=f"telemetry:\n  otlp_endpoint: http://127.0.0.1:{collector.http.server_port}\n") as server:
        asyncio.run(publish(server))
        asyncio.run(until_true(lambda: collector.refusals == 0, PATIENCE_S, "the trace is sent once"))
        assert server.request("POST", "/whip/traced", "v=0", {
            "Authorization": f"Bearer {token('cam', 'traced')}", "Content-Type": "application/sdp"})[0] == 400
        end = time.monotonic() + PATIENCE_S
        while len({span["traceId"] for span in collector.spans}) < 2:
            assert time.monotonic() < end, collector.spans
            time.sleep(0.05)
        path, kind, body = collector.requests[0]
        assert (path, kind) == ("/v1/traces", "application/json")
        service = {one["key"]: one["value"]["stringValue"] for one in body["resourceSpans"][0]["resource"]["attributes"]}
        assert service["service.name"] == "martlet"
        spans = {span["name"]: span for span in collector.spans if span["traceId"] == trace}
        assert {"join", "token", "offer", "ICE", "DTLS", "first packet received", "first keyframe received"} <= set(spans)
        root = spans.pop("join")
        assert root["parentSpanId"] == parent and all(span["parentSpanId"] == root["spanId"] for span in spans.values())
        took = {name: (int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])) / 1e6 for name, span in spans.items()}
        print(f"figures: a join's steps in ms: {took}")
        begin, end = int(root["startTimeUnixNano"]), int(root["endTimeUnixNano"])
        assert all(begin <= int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) <= end for span in spans.values()) and took["token"] > 0, spans
        assert abs(int(root["endTimeUnixNano"]) / 1e9 - time.time()) < 60
        (refused,) = [span for span in collector.spans if span["traceId"] != trace and "parentSpanId" not in span]
        assert refused["name"] == "join" and refused["status"]["code"] == 2, refused
        read = [span for _, _, one in collector.requests for resource in published(one).resource_spans
                for scope in resource.scope_spans for span in scope.spans]
        assert all((len(span.trace_id), len(span.span_id)) == (16, 8) for span in read)
        ids = [bytes.fromhex(span["spanId"]) for _, _, one in collector.requests for span in one["resourceSpans"][0]["scopeSpans"][0]["spans"]]
        assert [span.span_id for span in read] == ids, "the schema's reader finds every span"
        (server_span,) = {span.kind for span in read if span.name == "join"}
        assert server_span == Span.SPAN_KIND_SERVER
        assert {span.status.code for span in read if span.trace_id.hex() == refused["traceId"]} >= {Status.STATUS_CODE_ERROR}
        assert "cam" not in json.dumps(collector.spans), "who it was is not the collector's to know"
        # Counted once the collector's answer is read.
        asyncio.run(until_true(lambda: server.metric("martlet_traces_exported_total") >= 2, PATIENCE_S, "both traces are counted"))
