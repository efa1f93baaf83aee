"""Deploying.md, followed to the letter as an administrator would: its commands and files are read from the page and used on a Debian machine that people
on another one reach. Part of `make nightly`; needs root and Debian's mirror.

    make interop ONLY=nightly_deploying.py
"""
import asyncio
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import pytest

from support.chromium import EXECUTABLE, REMOTES, chromium, until, wait_for_video
from support.machine import SCRIPT, Machine
from support.server import ROOT
from test_package import output

PAGE = (ROOT / "Sources/martlet/martlet.docc/Deploying.md").read_text()
NAME, OUTSIDE, CLIENT = "rooms.example.org", "203.0.113.7", "203.0.113.1"
PACKAGE = "./.build/package/martlet_0.1.0_amd64.deb"


def section(title):
    return re.search(rf"^## \d\. {title}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)[1]


def commands(title):
    """The indented lines: what is typed."""
    return [line.strip() for line in re.findall(r"^    (\S.*)$", re.sub(r"```.*?```", "", section(title), flags=re.S), re.M)]


def files(title, language):
    return re.findall(rf"```{language}\n(.*?)```", section(title), re.S)


class Internet:
    """A cable between the machine, which has the page's public address, and a namespace in which people sit."""

    def __init__(self, machine):
        self.machine, self.namespace = machine, f"martlet-out{os.getpid()}"
        self.folder = tempfile.TemporaryDirectory(prefix="martlet-internet-")

    def __enter__(self):
        ip = lambda *words: output("ip", *words)  # noqa: E731
        ip("netns", "add", self.namespace)
        ip("-n", self.namespace, "link", "add", "cable0", "type", "veth", "peer", "name", "eth0", "netns", str(self.machine.init))
        for where, name, address in ((["-n", self.namespace], "cable0", CLIENT), (["-n", f"/proc/{self.machine.init}/ns/net"], "eth0", OUTSIDE)):
            if name == "eth0":
                self.machine.run("ip", "addr", "add", f"{address}/24", "dev", name, network_only=True)
                self.machine.run("ip", "link", "set", name, "up", network_only=True)
            else:
                ip(*where, "addr", "add", f"{address}/24", "dev", name)
                ip(*where, "link", "set", name, "up")
                ip(*where, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        subprocess.run(["ip", "netns", "del", self.namespace], check=False, timeout=10)
        self.folder.cleanup()

    def run(self, *command, status=0):
        done = subprocess.run(["ip", "netns", "exec", self.namespace, *command], capture_output=True, text=True, timeout=30)
        assert status is None or done.returncode == status, (command, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def browser(self):
        script = pathlib.Path(self.folder.name) / "chromium"
        script.write_text(f'#!/bin/sh\nexec ip netns exec {self.namespace} {EXECUTABLE} "$@"\n')
        script.chmod(0o755)
        return chromium(f"--host-resolver-rules=MAP {NAME} {OUTSIDE}", "--ignore-certificate-errors", executable=str(script))


@pytest.fixture(scope="module")
def packages():
    """What an administrator has from Debian's mirror: nginx, nftables, curl and OpenSSL with what the machine lacks for them."""
    root = output(SCRIPT, "prepare", timeout=300).strip()
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "partial").mkdir()
        output("apt-get", "-qq", "-y", "-o", f"Dir::State::status={root}/var/lib/dpkg/status", "-o", f"Dir::Cache::archives={folder}",
               "-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=1", "install", "--download-only", "--no-install-recommends",
               "nginx", "nftables", "curl", "openssl", timeout=200)
        yield [path for path in pathlib.Path(folder).glob("*.deb")]


@contextlib.contextmanager
def administered(packages):
    """A machine with what the page takes for granted, and the package at the place that the page names."""
    with Machine() as machine, Internet(machine) as internet:
        machine.wait_for_boot()
        home = pathlib.Path(f"/proc/{machine.init}/root/root")
        (home / "debs").mkdir()
        for path in packages:
            shutil.copy(path, home / "debs")
        machine.run("sh", "-c", "apt-get install -y --no-install-recommends /root/debs/*.deb && rm -r /root/debs", timeout=100)
        place = home / PACKAGE
        place.parent.mkdir(parents=True)
        # The page begins with `make package`; the tests have built the server.
        shutil.copy(ROOT / output(ROOT / "Packaging/build.sh", "deb", COMPRESSION_LEVEL="1").split()[0], place)
        yield machine, internet, lambda line, **more: machine.run("sh", "-c", f"cd /root && {line}", timeout=100, **more)


def write(machine, path, text):
    machine.run("sh", "-c", f"mkdir -p {pathlib.Path(path).parent} && cat > {path}", text=text)


def set_up(machine, shell):
    """Sections 1 to 4."""
    build, install = commands("Install")
    assert build == "make package" and install == f"apt install {PACKAGE}"
    shell(install.replace("apt install", "apt-get install -y"))
    machine.wait_for("http://127.0.0.1:7881/healthz")
    certificate = "/etc/ssl/martlet/certificate.pem", "/etc/ssl/martlet/key.pem"
    shell(f"mkdir -p /etc/ssl/martlet && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={NAME}"
          f" -addext subjectAltName=DNS:{NAME} -out {certificate[0]} -keyout {certificate[1]} 2>&1")
    write(machine, "/etc/nginx/conf.d/martlet.conf", files("TLS and proxy", "nginx")[0])
    shell("nginx -t 2>&1 && systemctl restart nginx")
    # "Tell the server in /etc/martlet/martlet.yaml": below what the package wrote there.
    behind, nat = files("TLS and proxy", "yaml")[0], files("NAT and firewall", "yaml")[0]
    assert f"announced_addresses: [{OUTSIDE}]" in nat
    shell("cat >> /etc/martlet/martlet.yaml", text=f"{behind}\n{nat}")
    firewall = commands("NAT and firewall")
    assert len(firewall) == 3 and all(line.startswith("nft ") for line in firewall)
    for line in firewall:
        shell(line)
    environment, check, restart, journal, ready, outside = commands("Start, and see that it works")
    environment = environment.partition("#")[0]
    assert shell(f"{environment}; {check} 2>&1").splitlines()[-1] == "/etc/martlet/martlet.yaml: valid"
    shell(restart)
    machine.wait_for("http://127.0.0.1:7881/readyz")
    log = shell(journal)
    assert " ready " in log and " error " not in log, log
    assert shell(f"{ready} -o /dev/null -w '%{{http_code}}'").endswith("200")
    return environment, outside


def test_who_follows_Deploying_has_a_server_that_people_outside_use_through_its_proxy_and_that_drains_for_an_upgrade(packages):
    with administered(packages) as (machine, internet, shell):
        environment, openapi = set_up(machine, shell)
        reach = ["--resolve", f"{NAME}:443:{OUTSIDE}", "-k"]
        # The certificate is of no authority; an administrator's is.
        assert '"openapi"' in internet.run("sh", "-c", openapi.replace("curl ", f"curl {' '.join(reach)} "))
        assert internet.run("curl", "-s", *reach, "-o", "/dev/null", "-w", "%{http_code} %{redirect_url}", f"https://{NAME}/") == "200 "
        # The firewall: neither the plain port nor the private one from outside.
        for port in (7880, 7881):
            internet.run("curl", "-s", "-m", "2", f"http://{OUTSIDE}:{port}/healthz", status=28)
        mint = re.search(r"`(martlet token --config [^`]*)`", section("Start, and see that it works"))[1]
        assert "--identity ada --room test" in mint
        tokens = [shell(f"{environment}; {mint.replace('ada', name)}").strip() for name in ("ada", "bob")]

        async def call():
            async with internet.browser() as browser:
                pages = []
                for name, token in zip(("ada", "bob"), tokens):
                    page = await browser.new_page(bypass_csp=True, ignore_https_errors=True)
                    await page.goto(f"https://{NAME}/?room=test&name={name}&send=generated&join=1&token={token}")
                    await until(page, "Boolean(window.martlet?.joined)")
                    pages.append(page)
                for page in pages:
                    await wait_for_video(page)
                remotes = await pages[0].evaluate(REMOTES)
                assert all(re.fullmatch(rf"udp {OUTSIDE}:790[01]", remote) for remote in remotes) and remotes, remotes
                # Section 7. The package's drain of 30 s would hold the test up; what is in the file is the administrator's.
                shell("sed -i 's/drain: 30/drain: 3/' /etc/martlet/martlet.yaml && systemctl restart martlet")
                upgrade = commands("Upgrades")[0]
                assert upgrade == "apt install ./martlet_0.2.0_amd64.deb"
                began = time.monotonic()
                shell(f"apt-get install -y --reinstall {PACKAGE}")
                machine.wait_for("http://127.0.0.1:7881/readyz")
                for page in pages:
                    await until(page, "Boolean(window.martlet?.joined)", 30)
                    await wait_for_video(page, timeout_s=30)
                return remotes[0], time.monotonic() - began

        remote, seconds = asyncio.run(call())
        journal = shell("journalctl -u martlet -o cat")
        assert " error " not in journal and "Failed with result" not in journal, journal
        figures = shell("curl -s http://127.0.0.1:7881/metrics")
        for name in re.findall(r"^\| `(\w+)[^|]*\| [^|]* \|", section("What to watch"), re.M):
            assert re.search(rf"^{name}(_bucket)?[ {{]", figures, re.M), name
        print(f"figures: media over {remote}; both decode video again {seconds:.1f} s after the upgrade began")


def test_who_follows_Deploying_without_a_proxy_serves_TLS_and_shows_a_renewed_certificate_after_a_reload(packages):
    with administered(packages) as (machine, internet, shell):
        shell(commands("Install")[1].replace("apt install", "apt-get install -y"))
        make = (f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={NAME} -addext subjectAltName=DNS:{NAME}"
                " -out /etc/martlet/certificate.pem -keyout /etc/martlet/key.pem 2>/dev/null && chgrp martlet /etc/martlet/key.pem && chmod 640 /etc/martlet/key.pem")
        shell(make)
        # The two names that "Without a proxy" gives, as the package's file has them in its comment.
        assert "`http.tls.certificate` and `http.tls.key`" in section("TLS and proxy")
        shell(r"sed -i '/^# http:$/,/^#     key:/s/^# //' /etc/martlet/martlet.yaml")
        shell("cat >> /etc/martlet/martlet.yaml", text="\n" + files("NAT and firewall", "yaml")[0])
        shell("set -a; . /etc/martlet/martlet.env; martlet check-config /etc/martlet/martlet.yaml && systemctl restart martlet")
        machine.wait_for("http://127.0.0.1:7881/readyz")
        shown = lambda: internet.run("sh", "-c", f"openssl s_client -connect {OUTSIDE}:7880 -servername {NAME} </dev/null 2>/dev/null"  # noqa: E731
                                     " | openssl x509 -noout -serial")
        first = shown()
        shell(make)
        assert shown() == first
        shell("systemctl reload martlet")
        end = time.monotonic() + 10
        while shown() == first:
            assert time.monotonic() < end, shell("journalctl -u martlet -o cat -n 20")
            time.sleep(0.2)
        assert internet.run("curl", "-sk", "--resolve", f"{NAME}:7880:{OUTSIDE}", "-o", "/dev/null", "-w", "%{http_code}", f"https://{NAME}:7880/") == "200"
