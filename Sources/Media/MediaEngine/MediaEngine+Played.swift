import Forwarding
import MediaControl
public import Primitives

// What the server plays itself: clear packets of a peer without a transport, which go the way of every published track from step 4 on.

extension MediaEngine {
    /// Processes one packet of a peer with the profile `player`, in place. What comes for an unknown peer, which may have been removed meanwhile, is dropped
    /// and counted.
    public func receivePlayed(
        _ packet: UnsafeMutableRawBufferPointer, isRTCP: Bool, of id: PeerID, at now: MonotonicTime
    ) {
        clock = now
        abandonOpenTurn()
        guard let index = tables.peerIndex[id.rawValue], tables.peers[index].pointee.profile == .player else {
            return counters.drops.count(.rtpUnknownStream)
        }
        tables.peers[index].pointee.packetsReceived &+= 1
        tables.peers[index].pointee.bytesReceived &+= UInt64(packet.count)
        if isRTCP {
            receiveRTCP(packet, packet.count, of: index, at: now)
        } else {
            receiveRTP(packet, packet.count, of: index, at: now)
        }
    }

    /// Lets a player's uplink notice silence; its feedback goes nowhere, because a file is asked for nothing.
    func advancePlayer(_ index: Int, at now: MonotonicTime) {
        let uplink = tables.peers[index].pointee.uplink
        withUnsafeTemporaryAllocation(byteCount: Self.unsentReport, alignment: 8) { buffer in
            while uplink.nextDeadline <= now, uplink.advance(to: now, feedback: buffer) > 0 {}
        }
        if uplink.hasEvents { receive(uplink.takeEvents(), at: now) }
    }

    /// As much as any report that is sent.
    private static let unsentReport = 1_200
}
