"""A Debian machine with nothing but Martlet's runtime packages: processes, mounts and network of its own (Tests/Support/machine.sh)."""
import functools
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from .server import ROOT
from .waiting import PATIENCE_S

SCRIPT = ROOT / "Tests/Support/machine.sh"


@functools.cache
def why_no_machines():
    """Why this user or this sandbox may not have one. Empty where it may."""
    try:
        done = subprocess.run(["unshare", "-m", "-p", "-u", "-i", "-n", "-C", "-f", "--kill-child", "true"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip() or "unshare failed"


class Machine:
    """Boots systemd, or runs `command` as process 1. `files` is a folder whose contents lie above the root file system's."""

    def __init__(self, *command, files=None, **environment):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="martlet-machine-"))
        if files:
            shutil.copytree(files, self.folder / "changes", symlinks=True)
        # The overlay's topmost folder is the machine's root folder, which is everybody's to enter.
        (self.folder / "changes").mkdir(exist_ok=True)
        (self.folder / "changes").chmod(0o755)
        self.log_path = self.folder / "log"
        self.process = subprocess.Popen(
            [SCRIPT, "start", self.folder, *command], stdin=subprocess.DEVNULL, stdout=open(self.log_path, "ab"), stderr=subprocess.STDOUT,
            env={**os.environ, **environment})
        self.init = self._init_process()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for groups in pathlib.Path("/sys/fs/cgroup").glob(f"**/{self.folder.name}"):
            self._remove(groups)
        shutil.rmtree(self.folder)

    @staticmethod
    def _remove(groups):
        """A tree of control groups whose processes are being killed."""
        end = time.monotonic() + 5
        for group in [*sorted(groups.glob("**/"), reverse=True)]:
            while True:
                try:
                    group.rmdir()
                    break
                except OSError:
                    assert time.monotonic() < end, f"{group} is in use"
                    time.sleep(0.05)

    def _init_process(self):
        """What the machine's process 1 is called here."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log()
            own = pathlib.Path(f"/proc/{self.process.pid}")
            children = (own / f"task/{self.process.pid}/children").read_text().split()
            # Not the script any more, which becomes unshare, nor its second half, which becomes process 1.
            if (own / "comm").read_text() == "unshare\n" and children and "machine.sh" not in pathlib.Path(f"/proc/{children[0]}/cmdline").read_text():
                return int(children[0])
            time.sleep(0.02)
        raise AssertionError(f"the machine does not start: {self.log()}")

    def run(self, *command, status=0, network_only=False, timeout=60, text=None):
        """What a command prints inside; with `network_only` a program of this machine's runs in the other one's network."""
        spaces = ["-n"] if network_only else ["-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w"]
        clean = {"PATH": os.environ["PATH"] if network_only else "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            ["nsenter", "-t", str(self.init), *spaces, *command], capture_output=True, text=True, timeout=timeout, env=clean, input=text)
        assert status is None or done.returncode == status, (command, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout

    def fetch(self, url, *options):
        """(status, body) of an HTTP request on the machine's loopback; status 0: nobody answered."""
        text = self.run("curl", "-s", "-m", "20", "-w", "\n%{http_code}", *options, url, network_only=True, status=None)
        body, _, code = text.rpartition("\n")
        return int(code), body

    def wait_for(self, url, status=200, seconds=PATIENCE_S):
        end = time.monotonic() + seconds
        while (answer := self.fetch(url))[0] != status:
            assert self.process.poll() is None, self.log()[-3000:]
            assert time.monotonic() < end, (url, answer, self.log()[-3000:], self.run("journalctl", "-n", "40", status=None))
            time.sleep(0.1)
        return answer[1]

    def wait_for_boot(self):
        end = time.monotonic() + 60
        # It cannot be asked at first.
        while (state := self.run("systemctl", "is-system-running", status=None).strip()) != "running":
            assert time.monotonic() < end and self.process.poll() is None, (state, self.log()[-3000:])
            time.sleep(0.1)

    def paths(self):
        """{path: (mode, owner, group, size)} of all files that last, but dpkg's, apt's and the log's own."""
        kept = "/proc /sys /dev /run /tmp /var/lib/dpkg /var/lib/apt /var/cache/apt /var/cache/debconf /var/log /var/lib/systemd".split()
        pruned = " -o ".join(f"-path {path}" for path in kept)
        text = self.run("sh", "-c", f"find / \\( {pruned} \\) -prune -o -printf '%p\\t%m\\t%u\\t%g\\t%y\\n'")
        return dict(line.split("\t", 1) for line in text.splitlines())

    def log(self):
        return self.log_path.read_text(errors="replace")
