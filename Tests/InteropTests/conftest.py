import sys
import pathlib

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from support.server import Server  # noqa: E402


@pytest.fixture
def server():
    """A Martlet on loopback, stopped by SIGTERM at the end; its log must hold no error."""
    running = Server().start()
    yield running
    log = running.log()
    assert running.stop() == 0, log
    for line in log.splitlines():
        assert " error " not in line.lower(), line
