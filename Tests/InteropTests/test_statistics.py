"""What the server counts and says of a call, held against what its clients count."""
import asyncio
import time

import pytest

from support.aiortc_client import Client, MovingPicture
from support.chromium import EXECUTABLE, chromium, open_room, stands_still, until, wait_for_video
from support.network import SERVER_ADDRESS, Lab
from support.server import Server
from support.tokens import token
from support.waiting import PATIENCE_S

pytestmark = pytest.mark.judging

SENT = """async () => {
    const all = {};
    (await martlet.room.pub.getStats()).forEach((one) => { if (one.type === "outbound-rtp") all[one.kind] = one; });
    return all;
}"""
RECEIVED = """async () => {
    const all = {};
    (await martlet.room.sub.getStats()).forEach((one) => { if (one.type === "inbound-rtp") all[one.kind] = one; });
    return all;
}"""
#: Nothing is sent any more: what was under way arrives, and both sides have counted the same packets.
STOP = "() => Promise.all(martlet.room.pub.getSenders().map((one) => one.replaceTrack(null)))"
SHARE = 0.02
#: A rate is of the second before each look: on a busy machine a frame falls into one second for the server and into the next for the browser.
RATE_SHARE = 0.1


async def packets_of_a_phone(server):
    """Video packets that the server counts of an aiortc publisher, and those that it counts itself."""
    camera = MovingPicture()
    phone = await Client().publish(f"{server.url}/whip/alone", token("phone", "alone"), camera)
    await phone.connected()
    await asyncio.sleep(2)
    camera.enabled.clear()
    await asyncio.sleep(0.5)
    (sent,) = [one for one in (await phone.peer.getStats()).values() if one.type == "outbound-rtp"]
    (track,) = server.api("GET", "/v1/rooms/alone/participants/phone/stats")[1]["tracks"]
    await phone.close()
    return track["layers"][0]["packetsReceived"], sent.packetsSent


async def rates_of_video(server, subscriber):
    """What the server says of five seconds and what the subscriber counts in them: frames and kilobits per second.

    Five looks, each of the second before it, are of the same time as the counts only where each comes a second after the one before. Where the machine stood
    still meanwhile, another five seconds are taken, whatever was counted in these.
    """
    async def look():
        room = (await asyncio.to_thread(server.api, "GET", "/v1/rooms/counts/stats"))[1]["participants"]
        (layer,) = next(track for one in room for track in one["tracks"] if track["kind"] == "video")["layers"]
        sent = next(one for person in room for one in person["subscriptions"] if one["kind"] == "video")
        return layer["framesPerSecond"], sent["bitrate"] / 1000

    async def counted():
        video = (await subscriber.evaluate(RECEIVED))["video"]
        return video["framesReceived"], (video["bytesReceived"] + video["headerBytesReceived"]) * 8 / 1000, video["timestamp"] / 1000

    ends = time.monotonic() + PATIENCE_S
    while True:
        counts, looks = [await counted()], []
        for _ in range(5):
            await asyncio.sleep(1)
            looks.append(await look())
            counts.append(await counted())
        if max(after[2] - before[2] for before, after in zip(counts, counts[1:])) < 1.3 or time.monotonic() > ends:
            break
    begin, end, said = counts[0], counts[-1], [sum(column) / len(looks) for column in zip(*looks)]
    seconds = end[2] - begin[2]
    return [("frames per second", said[0], (end[0] - begin[0]) / seconds), ("kilobits per second", said[1], (end[1] - begin[1]) / seconds)]


def test_I6_the_servers_counts_match_the_browsers(server):
    """Packets, bytes, frames, keyframes, requests and sizes of a publisher and a subscriber, within 2 %."""
    async def run():
        async with chromium() as browser:
            ada = await open_room(browser, server, "counts", "ada", simulcast=0)
            bob = await open_room(browser, server, "counts", "bob", send="nothing")
            await wait_for_video(bob, frames=90, timeout_s=40)
            rates = await rates_of_video(server, bob)
            await ada.evaluate(STOP)

            async def arrived():
                return {kind: one["packetsReceived"] for kind, one in (await bob.evaluate(RECEIVED)).items()}

            await stands_still(arrived)
            sent, received = await ada.evaluate(SENT), await bob.evaluate(RECEIVED)
            room = server.api("GET", "/v1/rooms/counts/stats")[1]["participants"]
            tracks = {one["kind"]: one for one in next(p for p in room if p["identity"] == "ada")["tracks"]}
            subscriptions = {one["kind"]: one for one in next(p for p in room if p["identity"] == "bob")["subscriptions"]}
            phone, probeless = await packets_of_a_phone(server)
            pairs = []
            for kind in ("audio", "video"):
                down, seen = subscriptions[kind], received[kind]
                # Chromium counts what it sends again, and probes made of that, among its packets. What comes in again the server counts apart.
                again = seen.get("retransmittedPacketsReceived", 0)
                pairs += [
                    (f"{kind} packets sent", down["packetsSent"], seen["packetsReceived"] - again),
                    (f"{kind} bytes sent", down["bytesSent"], seen["bytesReceived"] + seen["headerBytesReceived"]),
                ]
            layer, theirs = tracks["audio"]["layers"][0], sent["audio"]
            pairs += [
                ("audio packets received", layer["packetsReceived"], theirs["packetsSent"]),
                ("audio bytes received", layer["bytesReceived"], theirs["bytesSent"] + theirs["headerBytesSent"]),
                ("video packets received of a client that sends no probes", phone, probeless),
            ]
            layer, theirs, down, seen = tracks["video"]["layers"][0], sent["video"], subscriptions["video"], received["video"]
            pairs += [
                ("frames received", layer["framesReceived"], theirs["framesEncoded"]),
                ("keyframes received", layer["keyframesReceived"], theirs["keyFramesEncoded"]),
                ("keyframe requests sent", layer["keyframeRequestsSent"], theirs["pliCount"] + theirs["firCount"]),
                ("keyframe requests received", down["keyframeRequestsReceived"], seen["pliCount"] + seen["firCount"]),
                ("width", layer["width"], theirs["frameWidth"]), ("height", layer["height"], theirs["frameHeight"]),
                ("height that is shown", layer["height"], seen["frameHeight"]),
                ("width that is sent", down["width"], seen["frameWidth"]), ("height that is sent", down["height"], seen["frameHeight"]),
                ("lost on the way in", layer["packetsLost"], 0), ("lost on the way out", down["fractionLost"], 0),
            ]
            print("figures: " + "; ".join(f"{what} {ours} of {others}" for what, ours, others in pairs))
            assert all(theirs > 0 for what, _, theirs in pairs if "packets" in what or "bytes" in what or "frames" in what)
            assert not [pair for pair in pairs if abs(pair[1] - pair[2]) > SHARE * max(pair[1], pair[2])]
            print("figures: " + "; ".join(f"{what} {ours:.1f} of {others:.1f}" for what, ours, others in rates))
            assert not [pair for pair in rates if abs(pair[1] - pair[2]) > RATE_SHARE * pair[2]]
            assert not ada.problems and not bob.problems

    asyncio.run(run())


REPORTS = """async (role) => {
    const all = {};
    (await martlet.room[role].getStats()).forEach((one) => {
        if (one.type === "remote-inbound-rtp" || one.type === "inbound-rtp") all[`${one.type} ${one.kind}`] = one;
        if (one.type === "candidate-pair" && one.nominated && one.currentRoundTripTime !== undefined) all.pair = one;
    });
    return all;
}"""
CLOSE_MS = 10


async def mean(samples, sample):
    """The mean of so many samples, one per second, each a list of numbers; with one that is missing it is none."""
    rows = []
    for _ in range(samples):
        await asyncio.sleep(1)
        rows.append(await sample())
    return [sum(column) / samples if None not in column else None for column in zip(*rows)]


@pytest.mark.at_night
def test_I6_round_trips_and_jitter_match_the_browsers():
    """I6: over links of 50 ms there and back the server's least round trips are the browsers', within 10 ms; and with 20 ms of jitter on the publisher's uplink its
    jitter is what it reports to the publisher, and what the subscriber measures of the audio behind it."""
    with Lab("mtrip", 2, "both", "delay", 25) as lab:
        server = Server(host=SERVER_ADDRESS, namespace=lab.server).start()

        async def run():
            async with chromium(executable=lab.wrapper(1, EXECUTABLE)) as one, chromium(executable=lab.wrapper(2, EXECUTABLE)) as two:
                ada = await open_room(one, server, "trips", "ada", simulcast=0, token=token("ada", "trips"))
                bob = await open_room(two, server, "trips", "bob", send="nothing", token=token("bob", "trips"))
                await wait_for_video(bob, frames=60, timeout_s=40)

                def ours():
                    everybody = {one["identity"]: one for one in server.api("GET", "/v1/rooms/trips/stats")[1]["participants"]}
                    trips = {name: next(c["roundTripMilliseconds"] for c in everybody[name]["connections"] if c["id"] == role)
                             for name, role in (("ada", "pub"), ("bob", "sub"))}
                    (audio,) = [one for one in everybody["ada"]["tracks"] if one["kind"] == "audio"]
                    (heard,) = [one for one in everybody["bob"]["subscriptions"] if one["kind"] == "audio"]
                    return trips, audio["layers"][0]["jitterMilliseconds"], heard["jitterMilliseconds"]

                async def trips():
                    sent, received, (own, *_) = await ada.evaluate(REPORTS, "pub"), await bob.evaluate(REPORTS, "sub"), ours()
                    reported = [sent[f"remote-inbound-rtp {kind}"].get("roundTripTime", 0) * 1_000 for kind in ("audio", "video")]
                    return own["ada"], *reported, own["bob"], received["pair"]["currentRoundTripTime"] * 1_000

                async def jitter():
                    sent, received = await ada.evaluate(REPORTS, "pub"), await bob.evaluate(REPORTS, "sub")
                    _, measured, heard = ours()
                    return measured, sent["remote-inbound-rtp audio"]["jitter"] * 1_000, received["inbound-rtp audio"]["jitter"] * 1_000, heard

                # The least of some: a busy browser answers late now and then, which one of both round trips has on top and the other has not.
                looks, calm = [], []
                for _ in range(8):
                    looks.append(await trips())
                    calm.append(await jitter())
                    await asyncio.sleep(1)
                # 0: not measured yet.
                published, of_audio, of_video, subscribed, pair = (min(trip for trip in column if trip) for column in zip(*looks))
                # By the server's own jitter: a loaded browser sends unevenly now and then, which the link has no part in.
                calm = min(calm)
                lab.set(1, "ba jitter 20")
                await asyncio.sleep(5)
                measured, reported, behind, heard = await mean(8, jitter)
                print(f"figures: round trips of the publisher {published} of {of_audio} and {of_video} ms, of the subscriber {subscribed} of {pair} ms; "
                      f"jitter {measured} of {reported} and {behind} ms, as the subscriber's reports say {heard}, before {calm}")
                for own, theirs in ((published, of_audio), (published, of_video), (subscribed, pair), (measured, reported), (measured, behind), (heard, behind)):
                    assert abs(own - theirs) <= CLOSE_MS, (own, theirs)
                assert of_audio >= 45 and pair >= 45 and measured >= 8 and calm[0] <= 5, "what the links make"
                assert not ada.problems and not bob.problems

        try:
            asyncio.run(run())
        finally:
            server.stop()


def test_I7_quality_falls_with_loss_and_recovers():
    """15 % of what is sent to bob is lost: he and ada are notified that his network is bad, and later that it is good again."""
    def shows(tile, condition):
        return f"(() => {{ const q = Number(document.querySelector('{tile} .quality')?.dataset.quality); return {condition}; }})()"

    with Lab("mqual", 2, "both", "delay", 10) as lab:
        server = Server(host=SERVER_ADDRESS, namespace=lab.server).start()

        async def run():
            async with chromium(executable=lab.wrapper(1, EXECUTABLE)) as one, chromium(executable=lab.wrapper(2, EXECUTABLE)) as two:
                ada = await open_room(one, server, "quality", "ada", simulcast=0, token=token("ada", "quality"))
                bob = await open_room(two, server, "quality", "bob", token=token("bob", "quality"))
                await wait_for_video(bob, timeout_s=40)
                pages = [(bob, ".tile.own"), (ada, ".tile:not(.own)")]
                for page, tile in pages:
                    await until(page, shows(tile, "q === 5"), 30)
                lab.set(2, "ab loss 15")
                for page, tile in pages:
                    await until(page, shows(tile, "q >= 1 && q <= 2"), 30)
                lab.set(2, "ab loss 0")
                for page, tile in pages:
                    await until(page, shows(tile, "q === 5"), 40)

        try:
            asyncio.run(run())
        finally:
            server.stop()
