import contextlib
import os
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from support.server import Server  # noqa: E402

SECONDS = int(os.environ.get("TEST_SECONDS", 120))


class FailuresAtOnce:
    """Names a failure when it happens: a run that is cut off has no summary."""

    def __init__(self, config):
        self.terminal = config.pluginmanager.get_plugin("terminalreporter")

    def pytest_runtest_logreport(self, report):
        if report.failed and self.terminal:
            self.terminal.write_line(f"\nFAILED at {report.when}: {report.nodeid}")


def pytest_configure(config):
    config.addinivalue_line("markers", "waits: waits for timers or other programs most of its time, and judges no speed: may run beside others")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAtOnce(config))


def waits(item):
    return item.get_closest_marker("waits") is not None


def pytest_itemcollected(item):
    """For two processes (`-n 2 --dist loadgroup`): what loads the machine or judges media runs one after the other; beside it runs what is
    marked `waits`, each file in one process because its fixtures cost time."""
    item.add_marker(pytest.mark.xdist_group(item.path.stem if waits(item) else "alone"))


def pytest_collection_modifyitems(items):
    """The longest group first."""
    items.sort(key=waits)


@contextlib.contextmanager
def running(**options):
    """A Martlet on loopback, stopped by SIGTERM at the end; its log must hold no error."""
    server = Server(**options).start()
    yield server
    log = server.log()
    assert server.stop() == 0, log
    for line in log.splitlines():
        assert " error " not in line.lower(), line


@pytest.fixture(autouse=True)
def bounded():
    """No test may hang: after two minutes (`make nightly` gives more) it is interrupted where it stands."""
    def expired(*_):
        raise TimeoutError(f"the test took more than {SECONDS} s")

    previous = signal.signal(signal.SIGALRM, expired)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


@pytest.fixture
def server():
    with running() as one:
        yield one


@pytest.fixture
def development_server():
    """As `make run` starts it: the page makes its own tokens."""
    with running(development=True) as one:
        yield one


def pytest_terminal_summary(terminalreporter):
    """What the tests measured, one line each: a pass alone does not say how close it was."""
    for report in terminalreporter.getreports("passed"):
        for line in report.capstdout.splitlines():
            if line.startswith("figures: "):
                terminalreporter.write_line(f"{report.nodeid.split('::')[-1]}: {line.removeprefix('figures: ')}")
