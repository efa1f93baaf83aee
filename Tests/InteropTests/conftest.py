import contextlib
import os
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from support.server import Server  # noqa: E402

SECONDS = int(os.environ.get("TEST_SECONDS", 120))


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
