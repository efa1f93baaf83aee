"""Processes that a test started: those below another one, and all of them stopped for a while, as a laptop's sleep does."""
import contextlib
import ctypes
import os
import pathlib
import signal


#: PR_SET_PDEATHSIG of prctl(2).
PARENT_DEATH_SIGNAL = 1


def die_with_parent():
    """For the child between fork and exec: it gets SIGTERM when the thread that started it ends."""
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGTERM)


def descendants(ancestor):
    """The ids of all processes below `ancestor`."""
    children = {}
    for folder in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(folder.name))
    found, waiting = [], [ancestor]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def browser_of(flag):
    """The processes of the browser that this process launched with the command line flag `flag`."""
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if flag.encode() in words and not any(word.startswith(b"--type=") for word in words) and b"chromium" in words[0]:
                return [pid, *descendants(pid)]
    raise AssertionError(f"no browser was launched with {flag}")


@contextlib.contextmanager
def suspended(pids):
    """None of these processes runs meanwhile."""
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
