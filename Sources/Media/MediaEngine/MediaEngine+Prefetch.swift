import Forwarding
import PeerTransport
public import Primitives

// Prefetches the memory of receivers. Between two turns other threads and the kernel use the caches: a peer's
// packet or report touches some fifty cache lines in eight places, each a tenth of a microsecond away.

extension MediaEngine {
    /// How many datagrams ahead to call `owner(of:)`; then `prefetch(1, …)` one datagram later, and so on up to this.
    public static let prefetchSteps = 4

    /// The number of the peer to which datagrams from `source` belong, whose memory is prefetched; -1 for an unknown source. Valid within the turn.
    @inline(__always) public func owner(of source: SocketAddress) -> Int {
        guard let index = whereabouts.owner(of: source) else { return -1 }
        Prefetch.lines(tables.peers[index], MemoryLayout<PeerState>.size)
        return index
    }

    /// Prefetches what is `step` pointers away from the peer, for a report that it sent.
    @inline(__always) public func prefetch(_ step: Int, of owner: Int) {
        guard owner >= 0 else { return }
        let peer = tables.peers[owner]
        switch step {
        case 1:
            Prefetch.lines(peer.pointee.media, MemoryLayout<MediaPath>.size)
            if let downlink = peer.pointee.downlink { Prefetch.lines(downlink, MemoryLayout<Downlink>.size) }
        case 2:
            peer.pointee.media.pointee.prefetchReceiver()
        default:
            peer.pointee.media.pointee.prefetchKeys()
            peer.pointee.downlink?.pointee.prefetchReported()
        }
    }

    /// Prefetches the memory of the peers whose packets are written next, each a step further along the pointers than the one after it: peer;
    /// what it points to; what that points to; the log entry of its next packet.
    @inline(__always) func prefetchPeers(behind cursor: Int) {
        let count = turn.pendingPeers.count
        if cursor &+ 3 < count {
            Prefetch.lines(tables.peers[Int(turn.pendingPeers[cursor &+ 3])], MemoryLayout<PeerState>.size)
        }
        if cursor &+ 2 < count {
            let peer = tables.peers[Int(turn.pendingPeers[cursor &+ 2])]
            if let downlink = peer.pointee.downlink { Prefetch.lines(downlink, Downlink.hotBytes) }
            Prefetch.lines(peer.pointee.media, MemoryLayout<MediaPath>.size)
        }
        if cursor &+ 1 < count {
            let peer = tables.peers[Int(turn.pendingPeers[cursor &+ 1])]
            peer.pointee.media.pointee.prefetchForSending()
        }
        tables.peers[Int(turn.pendingPeers[cursor])].pointee.downlink?.pointee.prefetchNext()
    }

    /// Prefetches the memory of the subscriptions planned next: for one what its own memory points to, for the one after it that memory.
    @inline(__always) func prefetchSubscriptions(
        from next: UnsafeMutablePointer<SubscriptionState>, _ base: UnsafeMutablePointer<SubscriptionState>
    ) {
        let following = next.pointee.nextOfTrack
        if following >= 0 { Prefetch.lines(base + following, SubscriptionState.hotBytes) }
        next.pointee.subscription.prefetch()
    }
}
