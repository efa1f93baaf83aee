import Forwarding
import MediaControl
import PeerTransport
public import Primitives

// TCP connections (ICE-TCP): to the engine each is an address, which can end, and whose reader can be slow.

extension MediaEngine {
    /// The worker for which the first packet of a connection is, by the user name fragment of a check; nil if it is none.
    public static func worker(ofCheck packet: UnsafeRawBufferPointer) -> Int? {
        guard let ufrag = TransportPeek.localUfrag(of: packet.bytes) else { return nil }
        return WorkerMark.worker(of: UnsafeRawBufferPointer(rebasing: packet[ufrag]))
    }

    /// The connection at `address` has ended: nothing more can be sent there. Its peer stays until ICE gives it up, and may come back on another one.
    public func connectionEnded(_ address: SocketAddress, at now: MonotonicTime) {
        clock = now
        abandonOpenTurn()
        for index in whereabouts.end(address) where tables.peers.contains(index) {
            tables.peers[index].pointee.addresses.removeAll { $0 == address }
            tables.peers[index].pointee.transport.release(address)
            handleTransportEvents(of: index, at: now)
            resumeVideo(of: index, at: now)
        }
    }

    /// The reader of the connection at `address` is slow: its peer gets no video until `resumeVideo`, and then begins with a keyframe.
    public func holdVideo(to address: SocketAddress, at now: MonotonicTime) {
        clock = now
        abandonOpenTurn()
        guard let index = whereabouts.owner(of: address), let downlink = tables.peers[index].pointee.downlink,
            tables.peers[index].pointee.media.pointee.destination == address, downlink.pointee.hold(at: now)
        else { return }
        for state in tables.subscriptions(ofPeer: index) where state.pointee.subscription.kind == .video {
            state.pointee.isReady = false
            guard state.pointee.track >= 0 else { continue }
            state.pointee.subscription.stop(tables.tracks[state.pointee.track].pointee.track)
        }
        touch(index)
    }

    /// The reader has caught up.
    public func resumeVideo(to address: SocketAddress, at now: MonotonicTime) {
        clock = now
        abandonOpenTurn()
        if let index = whereabouts.owner(of: address) { resumeVideo(of: index, at: now) }
    }

    private func resumeVideo(of index: Int, at now: MonotonicTime) {
        guard let downlink = tables.peers[index].pointee.downlink, downlink.pointee.way.release() else { return }
        if tables.peers[index].pointee.transport.mayReceive { startSubscriptions(of: index, at: now) }
        touch(index)
    }

    /// A peer's media may take another way now: another transport, and a connection that is not the slow one.
    func noteRoute(of index: Int, at now: MonotonicTime) {
        let peer = tables.peers[index]
        guard let downlink = peer.pointee.downlink, let destination = peer.pointee.media.pointee.destination,
            downlink.pointee.follow(destination)
        else { return }
        resumeVideo(of: index, at: now)
    }
}
