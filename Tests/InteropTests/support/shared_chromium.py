"""One Chromium for the tests of a process, one after the other: to start a browser costs as much processor time as a test of two pages spends on its media
(1 s to launch, 2 s until its processes are warm, of 8.5 s; measured). Each test gets contexts of its own, so cookies, storage and permissions are not shared."""
import atexit
import contextlib
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from .processes import die_with_parent

START_S = 60

#: What playwright adds where it launches a browser itself, as far as a page of these tests can notice it.
AS_LAUNCHED = [
    "--headless", "--no-startup-window", "--no-first-run", "--no-default-browser-check", "--disable-back-forward-cache", "--disable-background-networking",
    "--disable-component-update", "--disable-default-apps", "--disable-extensions", "--disable-field-trial-config", "--disable-hang-monitor",
    "--disable-ipc-flooding-protection", "--disable-popup-blocking", "--disable-prompt-on-repost", "--disable-sync", "--enable-unsafe-swiftshader",
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
    "--force-color-profile=srgb", "--hide-scrollbars", "--password-store=basic", "--use-mock-keychain",
]


class SharedChromium:
    def __init__(self):
        self._process = None
        self._profile = None
        self._lent = False
        atexit.register(self._end)

    @contextlib.contextmanager
    def lent(self, executable, flags):
        """The address at which its tools listen, or None where a test has it already: a second browser of a test is meant to be another process.

        A test that fails may leave it in any state, so the next one gets a new one.
        """
        if self._lent:
            yield None
            return
        self._lent = True
        try:
            yield self._address(executable, flags)
        except BaseException:
            self._end()
            raise
        finally:
            self._lent = False

    def _address(self, executable, flags):
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._profile = pathlib.Path(tempfile.mkdtemp(prefix="martlet-chromium-"))
            self._process = subprocess.Popen(
                [executable, *AS_LAUNCHED, *flags, "--remote-debugging-port=0", f"--user-data-dir={self._profile}"], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=die_with_parent)
        return f"ws://127.0.0.1:{'/'.join(self._listening())}"

    def _listening(self):
        """The port, and the path without its slash, which the browser writes into its profile."""
        deadline = time.monotonic() + START_S
        while True:
            with contextlib.suppress(OSError, ValueError):
                port, path = (self._profile / "DevToolsActivePort").read_text().splitlines()
                return port, path.removeprefix("/")
            assert self._process.poll() is None, f"Chromium ended at its start with status {self._process.returncode}"
            assert time.monotonic() < deadline, f"Chromium does not listen {START_S} s after its start"
            time.sleep(0.02)

    def _end(self):
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._profile is not None:
            shutil.rmtree(self._profile, ignore_errors=True)
            self._profile = None
