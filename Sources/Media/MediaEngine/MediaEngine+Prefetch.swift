import Forwarding
import PeerTransport
public import Primitives

// Memory of receivers, asked for before it is needed. Between two turns other threads and the kernel use the caches: what a peer's
// packet or report touches is some fifty lines in eight places, each a tenth of a microsecond away.

extension MediaEngine {
    /// How many datagrams ahead `owner(of:)` should be asked; then `prefetch(1, …)` one datagram later, and so on up to this.
    public static let prefetchSteps = 4

    /// The number of the peer that datagrams from `source` belong to, whose memory is asked for; -1 for a stranger's. Valid within the turn.
    @inline(__always) public func owner(of source: SocketAddress) -> Int {
        guard let index = whereabouts.owner(of: source) else { return -1 }
        Prefetch.lines(tables.peers[index], MemoryLayout<PeerState>.size)
        return index
    }

    /// Asks for what lies `step` pointers behind the peer, for a report that it sent.
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

    /// Asks for the memory of the peers whose packets are written next, each a step further along the pointers than the one behind it: peer;
    /// what it points to; what that points to; the place of its next packet in the log of what was sent.
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

    /// Asks for the memory of the subscriptions that are planned next: for one what its own memory names, for the one behind it that memory.
    @inline(__always) func prefetchSubscriptions(
        from next: UnsafeMutablePointer<SubscriptionState>, _ base: UnsafeMutablePointer<SubscriptionState>
    ) {
        let following = next.pointee.nextOfTrack
        if following >= 0 { Prefetch.lines(base + following, SubscriptionState.hotBytes) }
        next.pointee.subscription.prefetch()
    }
}
