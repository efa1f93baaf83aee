"""Captures of a participant's decrypted packets, read by tshark."""
import asyncio
import json
import re
import subprocess
import time

from conftest import running
from support.chromium import chromium, open_room, until, wait_for_video
from support.tokens import token
from support.waiting import PATIENCE_S

PORTS = [f"udp.port=={port},{'rtcp' if port % 2 else 'rtp'}" for port in range(40_000, 40_004)]
ALLOWED = "rooms: {allow_captures: true}\n"


def tshark(path, *fields, only="rtp"):
    """The fields of all packets of a protocol, as lists of texts."""
    command = ["tshark", "-r", path, "-Y", only, "-T", "fields"]
    for rule in PORTS:
        command += ["-d", rule]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


def start(server, room, who, **wanted):
    status, info = server.api("POST", f"/v1/rooms/{room}/participants/{who}/captures", wanted)
    assert status == 201, info
    return f"/v1/rooms/{room}/participants/{who}/captures/{info['id']}"


def download(server, place, path):
    import urllib.request
    from support.tokens import admin_token
    request = urllib.request.Request(f"{server.url}{place}/packets", headers={"Authorization": f"Bearer {admin_token()}"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as reply:
        assert reply.headers["Content-Type"] == "application/x-pcapng"
        path.write_bytes(reply.read())
    return path


def dropped_late(server):
    return sum(float(value) for value in re.findall(r'(?m)^martlet_packets_dropped_total\{reason="receivedLate"\} (\S+)$', server.get_private("/metrics")[1]))


def test_a_capture_has_every_packet_in_clear_text_as_tshark_reads_it(tmp_path):
    """SSRCs and sequence numbers without a gap in both directions, RTCP, no payload unless asked for; the participant and the event log know of it."""
    async def run(server):
        async with chromium() as browser:
            ada = await open_room(browser, server, "fault", "ada")
            bob = await open_room(browser, server, "fault", "bob")
            await wait_for_video(ada)
            await wait_for_video(bob)
            late = dropped_late(server)
            place = start(server, "fault", "ada", seconds=60)
            await until(ada, "document.querySelector('#capture').textContent.startsWith('An operator captures your connection')")
            assert "no audio and no video" in await ada.evaluate("document.querySelector('#capture').textContent")
            assert await bob.evaluate("document.querySelector('#capture').textContent") == ""
            # As long as a layer counts as active after its last packet, which may have come before the capture began.
            await asyncio.sleep(4)
            received = {one["sid"]: one for one in server.api("GET", "/v1/rooms/fault/participants/ada/stats")[1]["tracks"]}
            headers = download(server, place, tmp_path / "headers.pcapng")
            late = dropped_late(server) - late
            # What it says for two seconds only is kept, whoever looks when.
            await bob.evaluate("""() => {
                const line = document.querySelector("#capture");
                window.said = [];
                new MutationObserver(() => said.push(line.textContent)).observe(line, { childList: true, characterData: true, subtree: true });
            }""")
            whole = start(server, "fault", "bob", seconds=6, payload=True)
            await until(bob, "said.some((text) => text.includes('with the audio and video'))")
            assert server.api("DELETE", place)[0] == 204
            await until(ada, "document.querySelector('#capture').textContent === ''")
            end = time.monotonic() + PATIENCE_S
            while "ended" not in server.api("GET", whole)[1]:
                assert time.monotonic() < end
                await asyncio.sleep(0.2)
            info = server.api("GET", whole)[1]
            payloads = download(server, whole, tmp_path / "payloads.pcapng")
            assert server.api("GET", place)[0] == 404
            return {layer["ssrc"] for one in received.values() for layer in one["layers"] if layer["isActive"]}, headers, payloads, info, late

    with running(extra=ALLOWED) as server:
        ssrcs, headers, payloads, info, late = asyncio.run(run(server))
        events = server.api("GET", "/v1/rooms/fault/events?after=0", headers={"Accept": "application/json"})[1]["events"]
        log = server.log()
    notices = [(one["type"], one["by"]) for one in events if one["type"].startswith("capture")]
    assert [kind for kind, _ in notices] == ["captureStarted", "captureStarted", "captureEnded", "captureEnded"] and all(by for _, by in notices)
    assert log.count("packet capture started") == 2

    packets = tshark(headers, "rtp.ssrc", "rtp.seq", "ip.src", "frame.cap_len", "rtp.cc", "rtp.ext.len")
    sent_by_ada = {int(ssrc, 16) for ssrc, _, source, *_ in packets if source == "192.0.2.1"}
    assert ssrcs <= sent_by_ada, "every active layer of hers"
    streams = {}
    for ssrc, number, source, kept, sources, extension in packets:
        headers_alone = 28 + 12 + 4 * int(sources) + (4 + 4 * int(extension) if extension else 0)
        assert int(kept) == headers_alone, "nothing of what is said or shown"
        streams.setdefault((ssrc, source), []).append(int(number))
    assert {source for _, source in streams} == {"192.0.2.1", "198.51.100.1"}
    missing = {source: 0 for _, source in streams}
    for (_, source), numbers in streams.items():
        missing[source] += (numbers[-1] - numbers[0]) % 65_536 + 1 - len(set(numbers))
    # What waited in the socket while the server had no processor, 0.5 s or more, is dropped before a capture sees it; what it sends goes on without a gap.
    assert missing["198.51.100.1"] == 0 and missing["192.0.2.1"] <= late, (missing, late)
    reports = tshark(headers, "rtcp.pt", "ip.src", only="rtcp")
    assert {source for _, source in reports} == {"192.0.2.1", "198.51.100.1"} and any(one.startswith("200") for one, _ in reports)
    assert not tshark(headers, "frame.number", only="_ws.malformed && rtcp")

    full = tshark(payloads, "frame.len", "frame.cap_len")
    assert full and all(length == kept for length, kept in full) and max(int(length) for length, _ in full) > 500
    assert info["ended"] == "duration" and info["payload"] and info["dropped"] == 0
    print(f"figures: {len(packets)} RTP in {len(streams)} streams, {len(reports)} RTCP; with payload {info['packets']} packets, {info['bytes']} bytes")


def test_captures_need_the_setting_and_the_grant(server):
    path = "/v1/rooms/none/participants/ada/captures"
    status, problem = server.api("POST", path, {})
    assert status == 403 and "rooms.allow_captures is false" in problem["detail"]
    status, _, text = server.request("POST", path, {}, {"Authorization": f"Bearer {token('ada', 'none')}"})
    assert status == 403 and json.loads(text)["code"] == "token_not_permitted"
