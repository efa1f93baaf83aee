"""What the server writes, read by another implementation's parser: a fault that reader and writer here shared would cancel out."""
import asyncio

from aiortc import rtp

from support.aiortc_client import Client, MovingPicture, Tone
from support.tokens import token


def reports(client):
    """Every RTCP packet that came, parsed by aiortc."""
    return [packet for compound in client.tap.rtcp for packet in rtp.RtcpPacket.parse(compound)]


def test_rtcp_reports_in_aiortc_match_what_was_sent(server):
    """Receiver reports, sender reports and source descriptions: SSRCs, counts, sequence numbers, and media time that advances with the clock."""
    async def run():
        sender = await Client().publish(f"{server.url}/whip/rtcp", token("phone", "rtcp"), MovingPicture(320, 180), Tone())
        await sender.connected()
        player = await Client().play(f"{server.url}/whep/rtcp/phone", token("tv", "rtcp"))
        await player.wait_for_frames(video=60, audio=180)

        own = {one._ssrc: one for one in sender.peer.getSenders()}
        blocks = [block for packet in reports(sender) if isinstance(packet, rtp.RtcpRrPacket) for block in packet.reports if block.ssrc in own]
        assert {block.ssrc for block in blocks} == set(own)
        for ssrc in own:
            last = [block for block in blocks if block.ssrc == ssrc][-1]
            sent = max(own[ssrc]._RTCRtpSender__rtp_history.values(), key=lambda packet: packet.timestamp).sequence_number
            behind = (sent - last.highest_sequence) % 0x10000
            assert last.packets_lost == last.fraction_lost == 0 and behind < 200, (last, sent)
            assert last.jitter < 9000, "a tenth of a second of video"

        described = [chunk for packet in reports(player) if isinstance(packet, rtp.RtcpSdesPacket) for chunk in packet.chunks]
        names = {dict(chunk.items)[1] for chunk in described}
        assert described and all(name and f"cname:{name.decode()}" in player.answer for name in names), names
        streams = {ssrc: seen for ssrc, seen in player.tap.rtp.items() if len(seen) > 40}
        for ssrc, seen in streams.items():
            infos = [one.sender_info for one in reports(player) if isinstance(one, rtp.RtcpSrPacket) and one.ssrc == ssrc]
            first, last = infos[0], infos[-1]
            passed, ticks = (last.ntp_timestamp - first.ntp_timestamp) / 2**32, (last.rtp_timestamp - first.rtp_timestamp) % 2**32
            # The publisher's media clock is as slow as a busy machine makes it.
            assert passed > 0.9 and min(abs(ticks / rate - passed) for rate in (48000, 90000)) < 0.15 * passed, (first, last)
            assert len(seen) - 200 < last.packet_count <= len(seen), (last, len(seen))
            assert 0 < last.octet_count < sum(size for _, _, size in seen)
        print(f"figures: {len(blocks)} report blocks, {len(described)} descriptions of {names}, sender reports of {len(streams)} streams")
        assert len(streams) == 2
        for client in (player, sender):
            await client.close()

    asyncio.run(run())
