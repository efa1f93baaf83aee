"""The dashboard and the alerts in Helm/, judged by Prometheus itself."""
import asyncio
import json
import pathlib
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request

import pytest
import yaml

from conftest import running
from support.chart import COTURN, of, render
from support.chart import server as serving_pod
from support.chromium import chromium, open_room, wait_for_video
from support.server import ROOT, free_ports
from support.tokens import token
from support.waiting import PATIENCE_S, until_true

RULES = ROOT / "Helm/martlet/rules/martlet.yaml"
DASHBOARD = ROOT / "Helm/martlet/dashboards/martlet.json"
#: Where the server writes its metrics.
PAGE = ROOT / "Sources/Edges/Telemetry"


def tool(name):
    installed = ROOT / ".build/tools" / name
    return installed if installed.exists() else name


def panels():
    """(title, expression) of every chart of the dashboard."""
    board = json.loads(DASHBOARD.read_text())
    return [(panel["title"], target["expr"]) for panel in board["panels"] for target in panel.get("targets", [])]


def test_K4_the_dashboard_draws_metrics_that_the_server_has_and_leaves_out_none_of_recordings_jobs_playbacks_and_TCP():
    sources = {path.name: path.read_text() for path in PAGE.glob("*.swift")}
    # Some names stand in tables and helpers of the page: for those that are drawn it is enough that it has the word.
    words = {f"martlet_{name}" for text in sources.values() for name in re.findall(r'"(\w+)"', text)}
    named = {name for _, expression in panels() for name in re.findall(r"martlet_\w+", expression)}
    drawn = {name if name in words else re.sub(r"_(bucket|count)$", "", name) for name in named}
    assert drawn <= words, drawn - words
    families = {file: {f"martlet_{name}" for name in re.findall(r'"(\w+)",\s*\.(?:counter|gauge),', text)} for file, text in sources.items()}
    needed = set().union(*(families[f"MetricsPage+{part}.swift"] for part in ("Recorder", "Jobs", "Player")))
    needed |= {name for names in families.values() for name in names if name.startswith("martlet_tcp_")}
    assert len(needed) >= 30 and needed <= drawn, needed - drawn
    board = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in board}) == len(board), "each panel has an id of its own"
    places = [(panel["gridPos"], panel["title"]) for panel in board]
    for index, (one, title) in enumerate(places):
        assert one["x"] + one["w"] <= 24, title
        for other, name in places[:index]:
            assert (one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
                    or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]), f"{title} lies on {name}"


#: What each alert needs to fire: series with their values, 15 s apart, and the labels of the alert.
FIRING = {
    "MartletDown": ([('up{job="martlet",instance="a"}', "1x4 0x116")], {"job": "martlet"}),
    "MartletWorkerHangs": ([('martlet_worker_hangs{instance="a",worker="0"}', "0x80 1x40")], {"worker": "0"}),
    "MartletWorkerBusy": ([('martlet_worker_busy_seconds_total{instance="a",worker="0"}', "0+14x120")], {"worker": "0"}),
    "MartletForwardsLate": ([('martlet_transit_seconds_bucket{instance="a",le="0.01"}', "0+9800x120"),
                             ('martlet_transit_seconds_bucket{instance="a",le="0.05"}', "0+10000x120"),
                             ('martlet_transit_seconds_bucket{instance="a",le="+Inf"}', "0+10000x120"),
                             ('martlet_transit_seconds_count{instance="a"}', "0+10000x120")], {}),
    "MartletSocketBufferFull": ([('martlet_receive_buffer_drops_total{instance="a",worker="0"}', "0+100x120")], {}),
    "MartletJoinsRefused": ([('martlet_refusals_total{instance="a",code="overloaded"}', "0+10x120")], {"code": "overloaded"}),
    "MartletNearItsLimit": ([('martlet_load{instance="a"}', "0.95x120")], {}),
    "MartletConnectsSlowly": ([('martlet_connect_seconds_bucket{instance="a",le="3"}', "0+1x120"),
                               ('martlet_connect_seconds_bucket{instance="a",le="5"}', "0+10x120"),
                               ('martlet_connect_seconds_bucket{instance="a",le="+Inf"}', "0+10x120"),
                               ('martlet_connect_seconds_count{instance="a"}', "0+10x120")], {}),
    "MartletConnectionsFail": ([('martlet_connections_closed_total{instance="a",reason="iceTimeout"}', "0+3x120"),
                                # Viewers: the server offers, and they answer.
                                ('martlet_offers_answered_total{instance="a"}', "0x120"), ('martlet_offers_made_total{instance="a"}', "0+10x120"),
                                ('martlet_connect_seconds_count{instance="a"}', "0+7x120"), ('martlet_joins_total{instance="a"}', "0+10x120")], {}),
    "MartletSubscribersLosePackets": ([('martlet_subscriber_loss_ratio_bucket{instance="a",le="0.05"}', "0+7x120"),
                                       ('martlet_subscriber_loss_ratio_count{instance="a"}', "0+10x120")], {}),
    "MartletNetworksBad": ([('martlet_participant_quality_bucket{instance="a",le="2.0"}', "0+4x120"),
                            ('martlet_participant_quality_count{instance="a"}', "0+10x120")], {}),
    "MartletOutOfConnections": ([('martlet_connections_reserved{instance="a"}', "95x120"),
                                 ('martlet_connections_limit{instance="a"}', "100x120")], {}),
    "MartletOutOfDescriptors": ([('process_open_fds{job="martlet",instance="a"}', "950x120"),
                                 ('process_max_fds{job="martlet",instance="a"}', "1000x120")], {"job": "martlet"}),
    # The clock of promtool's tests begins in 1970.
    "MartletCertificateExpires": ([('martlet_http_certificate_expiry_timestamp_seconds{instance="a"}', "170000x120")], {}),
    "MartletWebhookFails": ([('martlet_webhook_failing{instance="a",webhook="w"}', "1x120")], {"webhook": "w"}),
    "MartletWebhookEventsLost": ([('martlet_webhook_events_lost_total{instance="a",webhook="w"}', "0x80 1x40")], {"webhook": "w"}),
    "MartletRecordingDiskNearlyFull": ([('martlet_recording_free_bytes{instance="a"}', "50000000000-200000000x120")], {}),
    "MartletRecordingFails": ([('martlet_recording_failures_total{instance="a"}', "0x120"),
                               ('martlet_recording_tracks_refused_total{instance="a",reason="disk_full"}', "0x80 2x40")], {}),
    "MartletRecordingGaps": ([('martlet_recorded_tracks{instance="a"}', "10x120"), ('martlet_recording_gaps_total{instance="a"}', "0+5x120")], {}),
    "MartletUploadsFail": ([('martlet_recording_upload_failures_total{instance="a"}', "0+1x120"), ('martlet_recording_uploads_pending{instance="a"}', "2x120")], {}),
}


def test_K4_each_alert_fires_where_it_must_and_nowhere_else(tmp_path):
    shutil.copy(RULES, tmp_path / "martlet.yaml")
    shutil.copy(pathlib.Path(__file__).with_name("rules_test.yaml"), tmp_path / "quiet.yaml")
    names = re.findall(r"- alert: (\w+)", RULES.read_text())
    assert sorted(names) == sorted(FIRING) and len(names) == RULES.read_text().count("action:")
    quiet = (tmp_path / "quiet.yaml").read_text()
    assert all(f"alertname: {name}," in quiet for name in names)
    checked = subprocess.run([tool("promtool"), "check", "rules", "martlet.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    done = subprocess.run([tool("promtool"), "test", "rules", "quiet.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr
    for name, (series, labels) in FIRING.items():
        # Without the texts, which have figures in them: what counts is that it fires, and for whom.
        rule = {"rule_files": ["bare.yaml"], "evaluation_interval": "15s", "tests": [{
            "interval": "15s", "input_series": [{"series": one, "values": values} for one, values in series],
            "alert_rule_test": [{"eval_time": "25m", "alertname": name, "exp_alerts": [{"exp_labels": {
                "severity": "critical" if name in ("MartletDown", "MartletWorkerHangs") else "warning", "instance": "a", **labels}}]}]}]}
        bare = re.sub(r"\n        annotations:\n(          .*\n)+", "\n", RULES.read_text() + "\n")
        (tmp_path / "bare.yaml").write_text(bare)
        (tmp_path / "fires.yaml").write_text(json.dumps(rule))
        done = subprocess.run([tool("promtool"), "test", "rules", "fires.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, (name, done.stdout + done.stderr)


#: Fields of the Prometheus operator's objects (monitoring.coreos.com/v1) that the chart may use: what is not in its schema it ignores without a word.
OPERATORS = {"ServiceMonitor": {"jobLabel", "selector", "endpoints", "endpoints.port", "endpoints.path", "endpoints.interval", "selector.matchLabels"},
             "PrometheusRule": {"groups", "groups.name", "groups.rules", "groups.interval", "groups.rules.alert", "groups.rules.expr", "groups.rules.for",
                                "groups.rules.keep_firing_for", "groups.rules.labels", "groups.rules.annotations", "groups.rules.record"}}


def fields(value, path=()):
    """The paths of an object's members, but for maps whose names are anybody's."""
    if isinstance(value, list):
        for one in value:
            yield from fields(one, path)
    elif isinstance(value, dict) and path[-1:] not in (("matchLabels",), ("labels",), ("annotations",)):
        for name, part in value.items():
            yield ".".join((*path, name))
            yield from fields(part, (*path, name))


@pytest.mark.parametrize("values", [{}, {"replicas": 3}, COTURN, {"http": {"ingress": {"enabled": True, "host": "rooms.example.org", "perPod": True}}}],
                         ids=["defaults", "three pods", "coturn", "a host name for each pod"])
def test_K4_K5_the_operators_objects_of_the_chart_name_a_port_that_serves_metrics_and_rules_that_Prometheus_accepts(values, tmp_path):
    objects = render({**values, "networkPolicy": {"metricsFrom": [{"namespaceSelector": {}}]},
                      "monitoring": {"serviceMonitor": {"enabled": True, "labels": {"release": "p"}}, "rules": {"enabled": True, "labels": {"release": "p"}}}})
    for kind, known in OPERATORS.items():
        one, = of(objects, kind)
        assert one["apiVersion"] == "monitoring.coreos.com/v1" and one["metadata"]["labels"]["release"] == "p"
        assert set(fields(one["spec"])) <= known
    # Prometheus gets each endpoint of the matching Services that has the port: each pod once.
    monitor = of(objects, "ServiceMonitor")[0]["spec"]
    endpoint, = monitor["endpoints"]
    chosen = [one for one in of(objects, "Service") if monitor["selector"]["matchLabels"].items() <= one["metadata"]["labels"].items()
              and endpoint["port"] in [port["name"] for port in one["spec"]["ports"]]]
    assert [one["metadata"]["name"] for one in chosen] == ["rel-martlet-pods"] and chosen[0]["spec"]["publishNotReadyAddresses"] is True
    assert chosen[0]["metadata"]["labels"][monitor["jobLabel"]] == "martlet", "the alerts look for this job"
    ports = {port["name"]: port["containerPort"] for port in serving_pod(objects)["containers"][0]["ports"]}
    assert ports[next(port["targetPort"] for port in chosen[0]["spec"]["ports"] if port["name"] == endpoint["port"])] == 7881
    assert endpoint["path"] == "/metrics"
    # Helm's own braces are those of Prometheus' templates, too.
    spec = of(objects, "PrometheusRule")[0]["spec"]
    assert spec == yaml.safe_load(RULES.read_text())
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(spec))
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "scrape_configs": [{
        "job_name": "martlet", "metrics_path": endpoint["path"], "scrape_interval": endpoint["interval"], "static_configs": [{"targets": ["127.0.0.1:7881"]}]}]}))
    checked = subprocess.run([tool("promtool"), "check", "config", "prometheus.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert checked.returncode == 0 and f"{RULES.read_text().count('- alert:')} rules found" in checked.stdout, checked.stdout + checked.stderr


class Prometheus:
    """A Prometheus of this test's own that looks at one server every second. Beside the rules it has a copy that is in a hurry: it fires after two seconds.
    Its alerts have a label of their own: two groups that write the same series ALERTS refuse each other's samples as out of order."""

    def __init__(self, server, folder):
        self.port, = free_ports(1)
        self.hurried = folder / "hurried.yaml"
        self.hurried.write_text(re.sub(r"for: \w+", "for: 2s", RULES.read_text()).replace("labels: {", "labels: {copy: hurried, "))
        (folder / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(RULES), str(self.hurried)],
            "scrape_configs": [{"job_name": "martlet", "static_configs": [{"targets": [f"127.0.0.1:{server.private}"]}]}]}))
        self.log = open(folder / "log", "w")
        self.process = subprocess.Popen(
            [tool("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=self.log, stderr=subprocess.STDOUT)

    def get(self, path, **query):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=20) as reply:
            return json.load(reply)["data"]

    def rules(self, file):
        group, = [one for one in self.get("rules")["groups"] if one["file"] == str(file)]
        return group["rules"]

    def firing(self, file):
        return [rule["name"] for rule in self.rules(file) if rule["state"] == "firing"]

    def value(self, expression):
        return self.get("query", query=expression)["result"]

    def stop(self):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()


def test_K4_a_real_prometheus_answers_every_panel_and_rule_on_a_server_with_a_call(tmp_path):
    """And the alert of a webhook fires whose receiver is not there."""
    async def run(server, prometheus):
        async with chromium() as browser:
            webhook = {"url": f"http://127.0.0.1:{free_ports(1)[0]}/", "secret": "a secret of this webhook"}
            assert server.api("PUT", "/v1/webhooks/nobody", webhook)[0] == 201
            await open_room(browser, server, "call", "ada", token=token("ada", "call"))
            bob = await open_room(browser, server, "call", "bob", token=token("bob", "call"), send="nothing")
            await wait_for_video(bob)
            # A rate needs some samples.
            end = time.monotonic() + 60
            while True:
                try:
                    if prometheus.value("sum(rate(martlet_packets_forwarded_total[30s])) > 10") \
                            and float(prometheus.value("count_over_time(martlet_ready[1m])")[0]["value"][1]) >= 8:
                        break
                except OSError:
                    pass
                assert time.monotonic() < end, prometheus.process.poll()
                await asyncio.sleep(0.5)

            def values(expression):
                return prometheus.value(expression.replace("$__rate_interval", "30s").replace("$job", ".*"))

            def empty():
                return {title for title, expression in panels() if not values(expression)}

            # What has not happened, and what there is none of, has no series.
            quiet = {"Joins and departures", "Refused requests", "Closed peer connections", "Dropped packets", "HTTP limits reached",
                     "Webhooks: events that wait", "Webhooks: events", "API calls"}
            # A scrape that took more than its second leaves nothing until the next.
            await until_true(lambda: empty() <= quiet, PATIENCE_S, "every panel has a value")
            await until_true(lambda: any(values(expression) for title, expression in panels() if title == "Joins and departures"), PATIENCE_S, "joins are counted")
            for what in ("martlet_participants", "martlet_connect_seconds_count"):
                await until_true(lambda: [float(one["value"][1]) for one in prometheus.value(f"sum({what})")] == [2], PATIENCE_S, f"{what} is 2")
            # Prometheus evaluates each group at an offset of its own: a rule that has not had its turn is neither well nor ill.
            await until_true(lambda: all(rule["health"] != "unknown" for file in (RULES, prometheus.hurried) for rule in prometheus.rules(file)),
                             PATIENCE_S, "every rule is evaluated")
            # A scrape that took more than its second leaves the alert without its series for a moment. The copy does not wait for five minutes of it to say
            # what is true of a machine whose processors are busy with other tests, that packets leave late, and to see whether other tests go on filling its disk.
            def hurried():
                return set(prometheus.firing(prometheus.hurried)) - {"MartletForwardsLate", "MartletRecordingDiskNearlyFull"}

            await until_true(lambda: not prometheus.firing(RULES) and hurried() == {"MartletWebhookFails"}, PATIENCE_S, "the webhook's alert fires, and no other")
            for file in (RULES, prometheus.hurried):
                rules = prometheus.rules(file)
                assert len(rules) == len(FIRING)
                assert [(rule["name"], rule["health"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"] == []
            return len(panels())

    with running(extra=f"webhooks:\n  allow_private: true\nrecording:\n  directory: {tmp_path}/recordings\n  reserve: 0\n") as server:
        prometheus = Prometheus(server, tmp_path)
        try:
            print(f"figures: {asyncio.run(run(server, prometheus))} expressions, {len(FIRING)} alerts")
        finally:
            prometheus.stop()
