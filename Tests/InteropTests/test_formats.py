"""What the server writes, read by another implementation's parser: a fault that reader and writer here shared would cancel out."""
import asyncio

from aiortc import rtp

from support.aiortc_client import Client, MovingPicture, Tone
from support.tokens import token
from support.waiting import PATIENCE_S, until_true


def reports(client):
    """Every RTCP packet that came, parsed by aiortc."""
    return [packet for compound in client.tap.rtcp for packet in rtp.RtcpPacket.parse(compound)]


def test_rtcp_reports_in_aiortc_match_what_was_sent(server):
    """Receiver reports, sender reports and source descriptions: SSRCs, counts, sequence numbers, and media time as in the packets beside them."""
    async def run():
        sender = await Client().publish(f"{server.url}/whip/rtcp", token("phone", "rtcp"), MovingPicture(320, 180), Tone())
        await sender.connected()
        player = await Client().play(f"{server.url}/whep/rtcp/phone", token("tv", "rtcp"))
        await player.wait_for_frames(video=60, audio=180)

        own = {one._ssrc: one for one in sender.peer.getSenders()}

        def received():
            """The report blocks on what the sender sent."""
            return [block for packet in reports(sender) if isinstance(packet, rtp.RtcpRrPacket) for block in packet.reports if block.ssrc in own]

        def sent(ssrc):
            """Sequence numbers of the last 128 packets."""
            return {packet.sequence_number for packet in own[ssrc]._RTCRtpSender__rtp_history.values()}

        def played():
            return {ssrc: seen for ssrc, seen in player.tap.rtp.items() if len(seen) > 40}

        def reported(ssrc):
            """What the sender reports on a played stream say, each with the media time of the latest packet before it."""
            return [(one.sender_info, beside[ssrc]) for compound, beside in zip(player.tap.rtcp, player.tap.beside) if ssrc in beside
                    for one in rtp.RtcpPacket.parse(compound) if isinstance(one, rtp.RtcpSrPacket) and one.ssrc == ssrc]

        def are_recent():
            """Whether the last reports are about the last packets: after a stall many packets go at once, and reports follow within a second."""
            highest = {block.ssrc: block.highest_sequence % 0x10000 for block in received()}
            infos = {ssrc: [info for info, _ in reported(ssrc)] for ssrc in played()}
            return highest.keys() == own.keys() and all(number in sent(ssrc) for ssrc, number in highest.items()) and all(
                len(one) > 1 and one[-1].ntp_timestamp - one[0].ntp_timestamp > 0.9 * 2**32 and one[-1].packet_count > len(player.tap.rtp[ssrc]) - 200
                for ssrc, one in infos.items())

        await until_true(are_recent, PATIENCE_S, "reports on the last packets of each stream")
        blocks = received()
        assert {block.ssrc for block in blocks} == set(own)
        for ssrc in own:
            last = [block for block in blocks if block.ssrc == ssrc][-1]
            assert last.packets_lost == last.fraction_lost == 0 and last.highest_sequence % 0x10000 in sent(ssrc), (last, sent(ssrc))
            # Of all reports the least: while this process gets no processor, its packets are late, and their jitter is true. A wrong unit is wrong in all.
            assert min(block.jitter for block in blocks if block.ssrc == ssrc) < 9000, "a tenth of a second of video"

        described = [chunk for packet in reports(player) if isinstance(packet, rtp.RtcpSdesPacket) for chunk in packet.chunks]
        names = {dict(chunk.items)[1] for chunk in described}
        assert described and all(name and f"cname:{name.decode()}" in player.answer for name in names), names
        streams = played()
        sections = player.answer.split("m=")
        for ssrc, seen in streams.items():
            rate, = [48000 if section.startswith("audio") else 90000 for section in sections if f"a=ssrc:{ssrc} " in section]
            infos = reported(ssrc)
            (first, _), (last, _) = infos[0], infos[-1]
            assert last.ntp_timestamp - first.ntp_timestamp > 0.9 * 2**32, infos
            # The publisher's media is as slow as a busy machine makes it, so a report is compared with the packets beside it, not with the clock; and the closest counts, because
            # reports go on where this process makes no packets for a while. The first one is always close.
            away = min(abs((info.rtp_timestamp - latest + 2**31) % 2**32 - 2**31) for info, latest in infos[1:]) / rate
            assert away < 0.5, (infos, away)
            assert len(seen) - 200 < last.packet_count <= len(seen), (last, len(seen))
            assert 0 < last.octet_count < sum(size for _, _, size in seen)
        print(f"figures: {len(blocks)} report blocks, {len(described)} descriptions of {names}, sender reports of {len(streams)} streams, the closest report of the last stream {away:.3f} s from the media")
        assert len(streams) == 2
        for client in (player, sender):
            await client.close()

    asyncio.run(run())
