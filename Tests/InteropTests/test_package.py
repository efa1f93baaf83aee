"""What is installed: the Debian package on a machine with systemd, the image's program without one. Both with the packages of
Packaging/runtime-packages and no others."""
import ctypes
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from support.bare import offer
from support.machine import SCRIPT, Machine, why_no_machines
from support.server import BUILD, ROOT

PACKAGING = ROOT / "Packaging"
HEALTH, READY = "http://127.0.0.1:7881/healthz", "http://127.0.0.1:7881/readyz"


def output(*command, timeout=100, **environment):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, env={**os.environ, **environment})
    assert done.returncode == 0, (command, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


def listed(*kinds):
    rows = [line.split(None, 3) for line in (PACKAGING / "runtime-packages").read_text().splitlines() if line and not line.startswith("#")]
    return {row[1]: row for row in rows if not kinds or row[0] in kinds}


@pytest.fixture(scope="module")
def root():
    """The root file system; making it for the first time takes a minute."""
    if reason := why_no_machines():
        pytest.skip(f"needs namespaces (CAP_SYS_ADMIN): {reason}")
    return pathlib.Path(output(SCRIPT, "prepare", timeout=300).strip())


@pytest.fixture(scope="module")
def package():
    """The Debian package, out of the release build."""
    return ROOT / output(PACKAGING / "build.sh", "deb", COMPRESSION_LEVEL="1", PROGRAM_FOLDER=str(BUILD)).split()[0]


def test_the_debian_package_installs_serves_and_leaves_nothing(root, package):
    with Machine() as machine:
        machine.wait_for_boot()
        before = machine.paths(), machine.run("getent", "passwd"), machine.run("getent", "group")
        shutil.copy(package, f"/proc/{machine.init}/root/tmp/martlet.deb")
        # No package but this one, from a machine without a network: its dependencies are the list's.
        install = ["apt-get", "install", "-y", "--no-install-recommends", "/tmp/martlet.deb"]
        assert "1 newly installed" in machine.run(*install)
        machine.wait_for(HEALTH)
        show = lambda name: machine.run("systemctl", "show", "-P", name, "martlet").strip()  # noqa: E731
        assert machine.run("systemctl", "is-enabled", "martlet").strip() == "enabled"
        confined(machine, int(show("MainPID")))
        serves(machine)
        # Killed, it comes back.
        machine.run("systemctl", "kill", "-s", "KILL", "martlet")
        end = time.monotonic() + 20
        while show("NRestarts") != "1":
            assert time.monotonic() < end
            time.sleep(0.1)
        machine.wait_for(HEALTH)
        # Installed once more, as an upgrade is: the service is a new process, key and configuration are the old ones.
        machine.run("sh", "-c", "echo '# mine' >> /etc/martlet/martlet.yaml")
        key, process = machine.run("cat", "/etc/martlet/martlet.env"), show("MainPID")
        machine.run(*install[:2], "--reinstall", *install[2:])
        machine.wait_for(HEALTH)
        assert show("MainPID") != process and machine.run("cat", "/etc/martlet/martlet.env") == key
        assert machine.run("tail", "-1", "/etc/martlet/martlet.yaml") == "# mine\n"
        # A configuration that the server refuses makes the command fail, not only the server.
        machine.run("sh", "-c", "cp -p /etc/martlet/martlet.yaml /root/good && echo 'nothing: 1' >> /etc/martlet/martlet.yaml")
        machine.run("systemctl", "restart", "martlet", status=1)
        machine.run("sh", "-c", "cp -p /root/good /etc/martlet/martlet.yaml && rm /root/good && systemctl reset-failed martlet && systemctl restart martlet")
        machine.wait_for(HEALTH)
        machine.run("apt-get", "remove", "-y", "martlet")
        assert machine.fetch(HEALTH)[0] == 0
        machine.run("journalctl", "--sync")
        journal = machine.run("journalctl", "-u", "martlet", "-o", "cat")
        assert " error " not in journal and "Deactivated successfully" in journal and "shutting down" in journal, journal
        # The unit's filter of system calls lets the server see whether the clock is kept.
        assert ("nothing keeps the clock of this machine right" in journal) != clock_is_kept(), journal
        # The kill, and then the configuration that was refused, until it was put right.
        results = re.findall(r"Failed with result '(.*)'", journal)
        assert results[0] == "signal" and set(results[1:]) == {"exit-code"} and "there is no setting 'nothing'" in journal, journal
        # A removed package keeps its configuration, a purged one leaves nothing.
        machine.run("test", "-e", "/etc/martlet/martlet.yaml", "-a", "!", "-e", "/usr/bin/martlet")
        machine.run("apt-get", "purge", "-y", "martlet")
        assert machine.run("sh", "-c", "systemctl list-unit-files --no-legend martlet.service || true") == ""
        after = machine.paths(), machine.run("getent", "passwd"), machine.run("getent", "group")
        changed = {path for path in before[0].keys() | after[0].keys() if before[0].get(path) != after[0].get(path)}
        # Copies that useradd and userdel make of the tables that they change.
        assert {path for path in changed if not re.fullmatch(r"/etc/(passwd|group|shadow|gshadow|subuid|subgid)-", path)} == set()
        assert before[1:] == after[1:]
    print(f"figures: the package has {package.stat().st_size / 1e6:.1f} MB, the root file system without it {size(root):.0f} MB")


def size(folder):
    return int(output("du", "-sm", folder).split()[0])


def clock_is_kept():
    """Whether the kernel says so: STA_UNSYNC (0x40) is not set in the status of adjtimex(2), the sixth field."""
    clock = ctypes.create_string_buffer(256)
    assert ctypes.CDLL(None).adjtimex(clock) >= 0
    return not int.from_bytes(clock.raw[40:44], "little") & 0x40


def confined(machine, process):
    """What the unit promises, as the kernel sees the process."""
    facts = dict(line.split(":\t", 1) for line in machine.run("cat", f"/proc/{process}/status").splitlines() if ":\t" in line)
    assert facts["CapBnd"] == facts["CapEff"] == facts["CapPrm"] == "0" * 16 and facts["NoNewPrivs"] == "1" and facts["Seccomp"] == "2"
    assert machine.run("stat", "-c", "%U:%G", f"/proc/{process}").strip() == "martlet:martlet"
    limits = {line[:25].strip(): line[26:].split()[:2] for line in machine.run("cat", f"/proc/{process}/limits").splitlines()}
    # Without CAP_SYS_RESOURCE, as in some virtual machines, not even systemd raises a limit above its own.
    may_raise = int(re.search(r"CapBnd:\t(\w+)", pathlib.Path("/proc/self/status").read_text())[1], 16) >> 24 & 1
    files = 32_768 if may_raise else min(32_768, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    assert limits["Max open files"] == [str(files), str(files)]
    # LimitNICE lets media threads go first; no capability does.
    threads = machine.run("sh", "-c", f"cut -d' ' -f19 /proc/{process}/task/*/stat").split()
    assert "0" in threads and ("-10" in threads or not may_raise), threads
    inside = ["nsenter", "-t", str(process), "-m", "sh", "-c"]
    for folder, writable in [("/var/lib/martlet", True), ("/etc/martlet", False), ("/usr", False), ("/var/lib", False), ("/home", False)]:
        machine.run(*inside, f"touch {folder}/probe && rm {folder}/probe", status=0 if writable else 1)
    assert machine.run("stat", "-c", "%U %a", "/var/lib/martlet/martlet.db", "/var/lib/martlet").split() == ["martlet", "600", "martlet", "700"]
    assert machine.run("stat", "-c", "%U:%G %a", *["/etc/martlet" + name for name in ("", "/martlet.yaml", "/martlet.env")]).splitlines() == [
        "root:martlet 750", "root:martlet 640", "root:root 600"]


def serves(machine):
    """The server as its administrator uses it."""
    shell = lambda line: machine.run("sh", "-c", f"set -a; . /etc/martlet/martlet.env; {line}")  # noqa: E731
    config = "--config /etc/martlet/martlet.yaml"
    assert shell("runuser -u martlet -- martlet check-config /etc/martlet/martlet.yaml 2>&1").splitlines()[-1] == "/etc/martlet/martlet.yaml: valid"
    token = shell(f"martlet token {config} --identity ada --room studio").strip()
    published = machine.fetch(
        "http://127.0.0.1:7880/whip/studio", "-X", "POST", "-H", f"Authorization: Bearer {token}", "-H", "Content-Type: application/sdp",
        "--data-binary", offer())
    assert published[0] == 201 and "a=fingerprint:sha-256" in published[1]
    assert "studio" in shell(f"martlet rooms {config}")
    assert machine.fetch("http://127.0.0.1:7880/")[0] == 200
    documents = "man/man1/martlet.1.gz man/man5/martlet.yaml.5.gz doc/martlet/copyright doc/martlet/martlet.spdx.json.gz"
    machine.run("sh", "-c", f"cd /usr/share && ls {documents} zsh/vendor-completions/_martlet fish/vendor_completions.d/martlet.fish")
    complete = "source /usr/share/bash-completion/completions/martlet; COMP_WORDS=(martlet ki); COMP_CWORD=1; _martlet; echo ${COMPREPLY[@]}"
    assert machine.run("bash", "-c", complete).strip() == "kick"
    assert "sessions.drain" in machine.run("zcat", "/usr/share/man/man5/martlet.yaml.5.gz")


def test_K4_every_link_of_the_packages_pages_leads_somewhere_and_the_alerts_and_the_dashboard_are_its_examples(package, tmp_path):
    output("dpkg-deb", "-x", package, tmp_path)
    documents = tmp_path / "usr/share/doc/martlet"
    pages = sorted(documents.rglob("*.md"))
    assert {"README.md", "SECURITY.md", "Deploying.md", "Protocol.md"} <= {page.name for page in pages}
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#:]+)[#)]", page.read_text())]
    assert len(links) > 10 and [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []
    for example, source in [("prometheus-rules.yaml", "rules/martlet.yaml"), ("grafana-dashboard.json", "dashboards/martlet.json")]:
        assert (documents / "examples" / example).read_bytes() == (ROOT / "Helm/martlet" / source).read_bytes()
        assert f"/usr/share/doc/martlet/examples/{example}" in (ROOT / "Sources/martlet/martlet.docc/Deploying.md").read_text()
    assert {path.stat().st_mode & 0o777 for path in documents.rglob("*") if path.is_file()} == {0o644}


def test_a_purge_keeps_recordings_and_removes_everything_else(tmp_path):
    script = (PACKAGING / "debian/postrm").read_text()
    state = tmp_path / "state"
    functions = "\n".join(re.findall(r"^\w+\(\) \{\n.*?^\}$", script, re.M | re.S)).replace("state=/var/lib/martlet", f"state={state}")
    assert f"state={state}\n" in functions and "\n    remove_state\n" in script
    purge = lambda: output("sh", "-ec", f"chown() {{ :; }}\n{functions}\nremove_state")  # noqa: E731
    for folder in ("recordings/RM_1/RC_1", "elsewhere/RM_1/RC_1", "empty", ".cache"):
        (state / folder).mkdir(parents=True)
    for file in ("martlet.db", "martlet.db-wal", "recordings/RM_1/RC_1/recording.json", "elsewhere/RM_1/RC_1/recording.json", ".cache/file"):
        (state / file).touch()
    said = purge()
    assert {path.name for path in state.iterdir()} == {"recordings", "elsewhere"} and (state / "recordings/RM_1/RC_1/recording.json").exists()
    assert f"{state}/recordings has recordings" in said and f"{state}/elsewhere has recordings" in said
    shutil.rmtree(state / "recordings/RM_1")
    shutil.rmtree(state / "elsewhere")
    assert purge() == "" and not state.exists()
    assert purge() == "" and not state.exists()


def container_file():
    """{stage: [(instruction, words)]} of the container file, in order."""
    stages = {}
    for line in (PACKAGING / "Containerfile").read_text().splitlines():
        instruction, _, words = line.partition(" ")
        if instruction == "FROM":
            image, _, name = words.partition(" AS ")
            stages[name or "image"] = stage = [(instruction, image)]
        elif stages and line and not line.startswith("#"):
            stage.append((instruction, words))
    return stages


@pytest.fixture(scope="module")
def image(root, package):
    """What the container file adds to the root file system."""
    with tempfile.TemporaryDirectory() as folder:
        output(PACKAGING / "build.sh", "image", folder, root / "var/lib/dpkg/status", PROGRAM_FOLDER=str(BUILD))
        yield folder


def contained(image, **settings):
    """The image's program as process 1, as nobody, on a read-only root."""
    final = dict(container_file()["image"])
    user = ["setpriv", "--reuid=10001", "--regid=10001", "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    entry = json.loads(final["ENTRYPOINT"]) + json.loads(final["CMD"])
    return Machine(*user, *entry, files=image, READ_ONLY="1", MARTLET_KEYS=f"app:{'s' * 32}", **settings)


def test_K5_the_images_program_serves_as_nobody_on_a_read_only_root(root, image):
    """Without a container engine: what the container file does is done by hand, by the same scripts on the same base (`make nightly PARTS=image` has one)."""
    stages = container_file()
    assert list(stages) == ["runtime", "build", "image"] and stages["image"][0] == ("FROM", "runtime")
    # The root file system was made by this script.
    assert stages["runtime"][1:] == [("ARG", "JOBS="), ("RUN", "--mount=type=bind,source=Packaging,target=/packaging /packaging/install-runtime.sh ${JOBS}")]
    assert ("RUN", "Packaging/build.sh image /image /runtime-status") in stages["build"]
    final = dict(stages["image"])
    assert final["USER"] == "10001:10001" and final["COPY"] == "--from=build /image/ /" and final["STOPSIGNAL"] == "SIGTERM"
    chart = (ROOT / "Helm/martlet/templates/statefulset.yaml").read_text()
    assert "runAsUser: 10001\n" in chart and "runAsGroup: 10001\n" in chart
    installed = set(output("dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f=${Package}\n").split())
    assert names(json.loads(pathlib.Path(image, "usr/share/doc/martlet/martlet.spdx.json").read_text())) == installed | listed("static").keys() | {"martlet"}
    with contained(image, MARTLET_SESSIONS_DRAIN="5") as machine:
        machine.wait_for(READY)
        facts = pathlib.Path(f"/proc/{machine.init}/status").read_text()
        assert "\nUid:\t10001\t10001\t10001\t10001\n" in facts and f"\nCapBnd:\t{'0' * 16}\n" in facts
        maps = pathlib.Path(f"/proc/{machine.init}/maps").read_text()
        # A library of the list that the program opens by itself, and none of Swift's.
        assert "libswift" not in maps and ("libIPSec_MB" in maps or "aes" not in pathlib.Path("/proc/cpuinfo").read_text())
        # As process 1 it gets only the signals that it handles.
        os.kill(machine.init, signal.SIGTERM)
        assert machine.process.wait(10) == 0, machine.log()
        assert "shutting down" in machine.log() and " error " not in machine.log()


def test_K2_process_1_of_a_container_ends_at_once_by_SIGTERM_while_it_starts_and_by_a_second_one_while_it_drains(image):
    """The kernel keeps the effect that the signal has by itself from process 1."""
    # Nobody answers there, so the first question takes seconds; the media ports are open meanwhile.
    with contained(image, MARTLET_MEDIA_ANNOUNCED_ADDRESSES="discover", MARTLET_MEDIA_STUN_SERVER="127.0.0.1:9") as machine:
        end = time.monotonic() + 20
        while ":1EDC " not in pathlib.Path(f"/proc/{machine.init}/net/udp6").read_text():
            assert time.monotonic() < end and machine.process.poll() is None, machine.log()
            time.sleep(0.02)
        os.kill(machine.init, signal.SIGTERM)
        assert machine.process.wait(10) == 128 + signal.SIGTERM and "ready" not in machine.log(), machine.log()
    with contained(image, MARTLET_SESSIONS_DRAIN="600") as machine:
        machine.wait_for(READY)
        token = machine.run("sh", "-c", f"MARTLET_KEYS=app:{'s' * 32} martlet token --identity ada --room studio").strip()
        published = machine.fetch(
            "http://127.0.0.1:7880/whip/studio", "-X", "POST", "-H", f"Authorization: Bearer {token}", "-H", "Content-Type: application/sdp",
            "--data-binary", offer())
        assert published[0] == 201
        os.kill(machine.init, signal.SIGTERM)
        machine.wait_for(READY, 503)
        os.kill(machine.init, signal.SIGTERM)
        assert machine.process.wait(10) == 128 + signal.SIGTERM, machine.log()


def names(document):
    return {one["name"] for one in document["packages"]}


def test_the_list_of_packages_is_the_same_everywhere(package):
    fields = dict(line.split(": ", 1) for line in output("dpkg-deb", "-f", package).splitlines() if not line.startswith(" "))
    depends = {word.split()[0] for word in fields["Depends"].split(", ")}
    # The last two are what the package's scripts use.
    assert depends == listed("linked", "needed").keys() | {"adduser", "init-system-helpers"}
    assert set(fields["Recommends"].split(", ")) == listed("optional").keys()
    assert listed("jobs").keys() <= set(fields["Suggests"].split(", "))
    document = json.loads(next(package.parent.glob("*.spdx.json")).read_text())
    assert listed("linked", "needed", "static").keys() <= names(document)
    licences = {one["name"]: one["licenseDeclared"] for one in document["packages"]}
    relations = {(one["relationshipType"], one["relatedSpdxElement"]) for one in document["relationships"]}
    table = (ROOT / "SECURITY.md").read_text()
    for kind, name, licence, purpose in listed().values():
        licence = licence.replace("_", " ")
        assert f"| {name} | {licence} | {purpose} |" in table, f"SECURITY.md does not list {name} as runtime-packages does"
        if kind not in ("optional", "jobs"):
            assert licences[name] == licence
            assert ("CONTAINS" if kind == "static" else "DEPENDS_ON", "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)) in relations
    rows = re.findall(r"^\| (\S+) \| .* \| .* \|$", table.partition("## Dependencies")[2], re.M)
    assert set(rows) - {"package", "---"} == listed().keys()


def test_the_service_is_hardened_and_outlasts_its_drain():
    unit = PACKAGING / "martlet.service"
    settings = dict(line.split("=", 1) for line in unit.read_text().splitlines() if re.match(r"[A-Z]\w+=", line))
    drain = int(re.search(r"drain: (\d+)", (PACKAGING / "martlet.yaml").read_text())[1])
    assert int(settings["TimeoutStopSec"]) >= drain + 20
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder, "lib/systemd/system/martlet.service")
        place.parent.mkdir(parents=True)
        for name in ("usr/bin/martlet", "bin/sh"):
            program = pathlib.Path(folder, name)
            program.parent.mkdir(parents=True)
            program.touch()
            program.chmod(0o755)
        shutil.copy(unit, place)
        for target in ("multi-user.target", "network-online.target", "sysinit.target", "basic.target", "shutdown.target"):
            shutil.copy(f"/lib/systemd/system/{target}", place.parent)
        # 0 is no exposure, 10 is a service without any setting. It was 1.5 before the service might read whether the clock is kept (ProtectClock
        # refuses that, too): without the capability nobody sets a clock, but the figure counts the call.
        output("systemd-analyze", "security", "--offline=true", f"--root={folder}", "--threshold=17", "martlet.service")
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", f"--root={folder}", "martlet.service"], capture_output=True, text=True, timeout=30)
        assert "martlet.service" not in done.stderr, done.stderr
