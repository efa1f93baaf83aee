import contextlib
import os
import pathlib
import re
import signal
import sys

import pytest
from xdist.scheduler import LoadScopeScheduling

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from support import chromium  # noqa: E402
from support.server import Server  # noqa: E402

SECONDS = int(os.environ.get("TEST_SECONDS", 120))


class FailuresAtOnce:
    """Names a failure and its last lines when it happens: a run that is cut off has no summary."""

    def __init__(self, config):
        self.plugins = config.pluginmanager

    def pytest_runtest_logreport(self, report):
        if report.failed:
            reason = "\n".join(report.longreprtext.splitlines()[-12:])
            self.plugins.get_plugin("terminalreporter").write_line(f"\nFAILED at {report.when}: {report.nodeid}\n{reason}")


def pytest_configure(config):
    config.addinivalue_line("markers", "judging: judges loss, times or quality; `make test` runs it when nothing runs beside it")
    config.addinivalue_line("markers", "at_night: takes long, or shows with another browser, codec, container, page or end of a server what `make test` shows with one; `make nightly` runs it")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAtOnce(config))


#: Files that drive browsers most of the time: one test after the other. Their lane and the next one begin first.
BUSY = {f"test_{name}" for name in (
    "connections", "console", "console_call", "console_limits", "console_looks", "console_member", "console_names", "console_operators", "extensions",
    "matrix", "module", "network", "publish_only", "tcp")}
#: Files that wait for timers for most of their time, and those that drive no browser.
QUIET = {f"test_{name}" for name in (
    "capture_reports", "captures", "churn", "command_line", "conformance", "console_check", "console_outages", "descriptions", "discovery", "events", "guests",
    "helm", "helm_coturn", "joining", "livekit_input", "monitoring", "operations", "package", "packet_capture", "recording", "schema", "signalling")}


def pytest_xdist_make_scheduler(config, log):
    """Three processes (`-n 3 --dist loadscope`): one begins with each lane, and who is free takes the next file of those in neither. Two leave a fifth of two
    processors idle (measured)."""
    class Lanes(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = pathlib.Path(nodeid.split("::")[0]).stem
            return "busy" if file in BUSY else "quiet" if file in QUIET else file

    return Lanes(config, log)


@contextlib.contextmanager
def running(**options):
    """A Martlet on loopback, stopped by SIGTERM at the end; its log must hold no error and no access token."""
    server = Server(**options).start()
    try:
        yield server
    except BaseException:
        # The test has failed already: what it left behind must not slow down the others.
        with contextlib.suppress(OSError):
            print(f"The server's log ended with:\n{server.log()[-4000:]}", file=sys.stderr)
        server.discard()
        raise
    log = server.log()
    assert server.stop() == 0, log
    for line in log.splitlines():
        assert " error " not in line.lower(), line
        # A JWT's header and claims: tokens stand in addresses, and nothing that writes those may write them. Three letters of it stand in ids, too.
        assert not re.search(r"eyJ[\w-]+\.eyJ", line), line


@contextlib.contextmanager
def bounded():
    """Nothing may hang: after two minutes (`make nightly` gives more) a test is interrupted where it stands, but not while its failure is written down."""
    def expired(*_):
        raise TimeoutError(f"the test took more than {SECONDS} s")

    previous = signal.signal(signal.SIGALRM, expired)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    chromium.judge(item.get_closest_marker("judging") is not None)
    with bounded():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    with bounded():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown():
    with bounded():
        return (yield)


@pytest.fixture
def server():
    with running() as one:
        yield one


@pytest.fixture
def development_server():
    """As `make run` starts it: the page makes its own tokens."""
    with running(development=True) as one:
        yield one


def pytest_sessionfinish(session):
    """A test that this machine cannot run has shown nothing: where none may be left out, a run that leaves one out has not passed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("MARTLET_NO_SKIPS") and reporter and reporter.stats.get("skipped") and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """What the tests measured, one line each: a pass alone does not say how close it was."""
    for report in terminalreporter.getreports("passed"):
        for line in report.capstdout.splitlines():
            if line.startswith("figures: "):
                terminalreporter.write_line(f"{report.nodeid.split('::')[-1]}: {line.removeprefix('figures: ')}")
