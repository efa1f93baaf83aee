"""The dashboard and the alerts while a server has much to do: the generator is not part of `make test`."""
import json
import subprocess
import time

from conftest import running
from support.server import ROOT
from support.tokens import KEY, SECRET
from test_monitoring import RULES, Prometheus, panels

#: How long the generator measures; everybody has joined before.
SECONDS = 40
#: How far before the end the dashboard is looked at: peers may have left by the last scrape.
BEFORE_END = 5
#: What does not happen here, of which nothing is drawn.
QUIET = {"Refused requests", "Dropped packets", "HTTP limits reached", "Webhooks: events that wait", "Webhooks: events", "API calls", "Joins and departures",
         "Closed peer connections"}


def test_K4_a_real_prometheus_reads_a_loaded_server_without_a_gap_and_fires_no_alert(tmp_path):
    """Three webinars of a hundred: each panel has values but those of what does not happen, and packets are counted at the rate at which the generator received them."""
    path = tmp_path / "report.json"
    with running(extra=f"admission:\n  max_cpu: 100\nrecording:\n  directory: {tmp_path}/recordings\n  reserve: 0\n") as server:
        prometheus = Prometheus(server, tmp_path)
        try:
            command = [ROOT / ".build/release/loadtest", "run", ROOT / "LoadTests/Scenarios/webinar.json", "--url", server.url, "--key", KEY, "--secret", SECRET,
                       "--server-pid", server.process.pid, "--rooms", 3, "--seconds", SECONDS, "--json", path, "--quiet"]
            load = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=SECONDS + 60)
            moment = time.time() - BEFORE_END
            assert load.returncode == 0, load.stdout + load.stderr
            report = json.loads(path.read_text())

            def value(expression):
                return prometheus.get("query", query=expression, time=moment)["result"]

            empty = {title for title, expression in panels() if not value(expression.replace("$__rate_interval", "10s").replace("$job", ".*"))}
            assert empty <= QUIET, empty
            scraped, alive = (float(value(f"{what}(up[{SECONDS // 2}s])")[0]["value"][1]) for what in ("count_over_time", "min_over_time"))
            rate = float(value(f"sum(rate(martlet_packets_forwarded_total[{SECONDS // 2}s]))")[0]["value"][1])
            received = report["deliveredPerSecond"]
            busy = float(value(f"sum(rate(martlet_worker_busy_seconds_total[{SECONDS // 2}s]))")[0]["value"][1])
            print(f"figures: {len(panels())} expressions; {scraped:.0f} scrapes in {SECONDS // 2} s; {rate:,.0f} packets a second by Prometheus, {received:,.0f} at the "
                  f"generator; the media thread busy for {busy:.0%}")
            assert report["peers"] == 303 and report["failedJoins"] == 0
            # One scrape more or less falls into the window.
            assert alive == 1 and scraped >= SECONDS // 2 - 1
            # The generator counts over all of its time, Prometheus over half of it.
            assert abs(rate - received) < 0.05 * received
            assert prometheus.firing(RULES) == []
        finally:
            prometheus.stop()
