import Forwarding
import MediaControl
import PeerTransport
public import Primitives

// Peers: how they are added, how their addresses and user name fragments are managed, how they are removed; and their TCP connections (ICE-TCP): to the engine
// each is an address that can end, and whose reader can be slow.

extension WorkerEngine {
    func addPeer(_ description: PeerDescription, at now: MonotonicTime) -> Bool {
        guard let room = tables.roomIndex[description.room.rawValue], tables.peerIndex[description.id.rawValue] == nil
        else {
            return false
        }
        guard tables.peers.count < configuration.maximumPeers else {
            // The events report to anyone who waits for the connection that it will not be established and has carried nothing.
            emit(.peerMeasured(description.id, EndedPeer()))
            emit(.peerEnded(description.id, .overloaded))
            return true
        }
        let transport = WebRTCTransport(description: description, context: transports, at: now)
        let uplink = Uplink(feedbackSSRC: description.feedbackSSRC, profile: description.profile)
        let index = tables.addPeer(PeerState(description, room: room, transport: transport, uplink: uplink))
        // A player has no remote side that could send checks.
        if description.profile != .player { addUfrag(description.localICE.ufrag, to: index) }
        touch(index)
        return true
    }

    func setRemote(
        _ remote: RemoteTransport, of id: PeerID, at now: MonotonicTime, into batch: inout OutboundBatch
    ) -> Bool {
        guard let index = tables.peerIndex[id.rawValue] else { return false }
        tables.peers[index].pointee.transport.setRemote(remote, at: now, into: &batch)
        handleTransportEvents(of: index, at: now)
        return true
    }

    func restartICE(of id: PeerID, local: ICECredentials, at now: MonotonicTime) -> Bool {
        guard let index = tables.peerIndex[id.rawValue] else { return false }
        tables.peers[index].pointee.transport.restartICE(local: local, at: now)
        // The first is in use until a check with the newest arrives; one between them never will be.
        for superseded in tables.peers[index].pointee.ufrags.dropFirst() { removeUfrag(superseded.text, of: index) }
        addUfrag(local.ufrag, to: index)
        touch(index)
        return true
    }

    /// The control plane closes a peer: close_notify is sent, and all its state is freed.
    func closePeer(_ id: PeerID, at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        guard let index = tables.peerIndex[id.rawValue] else { return false }
        tables.peers[index].pointee.transport.close(at: now, into: &batch)
        handleTransportEvents(of: index, at: now)
        // A transport reports its end; even if it does not, the peer is removed.
        if tables.peerIndex[id.rawValue] != nil { removePeer(index, reason: .removed) }
        return true
    }

    /// ICE and DTLS timers; reports and feedback follow in `endTurn`, which processes every touched peer.
    func advancePeer(_ index: Int, to now: MonotonicTime, into batch: inout OutboundBatch) {
        let transport = tables.peers[index].pointee.transport
        if transport.nextDeadline <= now { transport.advance(to: now, into: &batch) }
        tables.peers[index].pointee.isTransportTouched = true
        handleTransportEvents(of: index, at: now)
    }

    /// Processes the transport's events; the peer may be removed afterwards.
    func handleTransportEvents(of index: Int, at now: MonotonicTime) {
        let peer = tables.peers[index]
        while peer.pointee.transport.wantsAttention, let event = peer.pointee.transport.pollEvent() {
            switch event {
            case .addressValidated(let address):
                whereabouts.claim(address, for: index)
                if !peer.pointee.addresses.contains(address) { peer.pointee.addresses.append(address) }
                if !peer.pointee.transport.isConnected { emit(.peerChecked(peer.pointee.id)) }
            case .addressConsented(let address): assign(address, to: index, at: now)
            case .addressReleased(let address):
                whereabouts.release(address, of: index)
                peer.pointee.addresses.removeAll { $0 == address }
            case .connected:
                emit(.peerConnected(peer.pointee.id))
            case .sendingAllowed:
                startSubscriptions(of: index, at: now)
                for case let track? in peer.pointee.uplink.tracks { track.senderReturned() }
            case .sendingForbidden: stopSubscriptions(of: index)
            case .moved:
                emit(.peerMoved(peer.pointee.id))
                peer.pointee.downlink?.pointee.pathChanged(at: now)
                for case let track? in peer.pointee.uplink.tracks { track.senderReturned() }
            case .dataChannelOpened(let terms): emit(.dataChannelOpened(peer.pointee.id, terms))
            case .dataChannelClosed(let label, let reason):
                emit(.dataChannelClosed(peer.pointee.id, label: label, reason))
            case .dataReceived(let label, let payload):
                counters.data.received &+= 1
                emit(.dataReceived(peer.pointee.id, label: label, payload))
            case .ufragReleased(let ufrag): removeUfrag(ufrag, of: index)
            case .ended(let reason):
                removePeer(index, reason: reason)
                return
            }
        }
        noteRoute(of: index, at: now)
        touch(index)
    }

    /// A peer has answered the server's check from `address`: the former owner no longer has it. This happens when a client dies and the next one
    /// gets the same port.
    private func assign(_ address: SocketAddress, to index: Int, at now: MonotonicTime) {
        guard let owner = whereabouts.assign(address, to: index) else { return }
        tables.peers[owner].pointee.addresses.removeAll { $0 == address }
        tables.peers[owner].pointee.transport.release(address)
        handleTransportEvents(of: owner, at: now)
    }

    private func removePeer(_ index: Int, reason: PeerEndReason) {
        let peer = tables.peers[index]
        let id = peer.pointee.id
        payDebts(of: index, at: clock)
        emit(.peerMeasured(id, lastReport(of: index)))
        for subscription in tables.subscriptions(ofPeer: index) {
            removeSubscription(tables.subscriptions.index(of: subscription))
        }
        for case let track? in peer.pointee.uplink.tracks { removeTrack(track.tag) }
        for address in peer.pointee.addresses {
            whereabouts.release(address, of: index)
        }
        for ufrag in peer.pointee.ufrags { whereabouts.remove(ufrag: ufrag.key) }
        deadlines.remove(.peer(index))
        tables.removePeer(index)
        emit(.peerEnded(id, reason))
    }

    private func lastReport(of index: Int) -> EndedPeer {
        let peer = tables.peers[index]
        var last = EndedPeer(bytesReceived: peer.pointee.bytesReceived, bytesSent: peer.pointee.bytesSent)
        guard let downlink = peer.pointee.downlink else { return last }
        last.bytesSent &+= downlink.pointee.bytesSent
        let history = downlink.pointee.history(at: clock)
        (last.decisions, last.estimates) = (history.decisions, history.estimates)
        return last
    }

    // MARK: - User name fragments

    private func addUfrag(_ text: String, to index: Int) {
        let key = UfragKey.of(Array(text.utf8))
        if whereabouts.add(ufrag: key, of: index) { tables.peers[index].pointee.ufrags.append((text, key)) }
    }

    private func removeUfrag(_ text: String, of index: Int) {
        for entry in tables.peers[index].pointee.ufrags where entry.text == text {
            whereabouts.remove(ufrag: entry.key)
        }
        tables.peers[index].pointee.ufrags.removeAll { $0.text == text }
    }

    // MARK: - TCP connections

    /// The worker that the first packet of a connection is for, by the user name fragment of a check; nil if the packet is no check.
    public static func worker(ofCheck packet: UnsafeRawBufferPointer) -> Int? {
        guard let ufrag = TransportPeek.localUfrag(of: packet.bytes) else { return nil }
        return WorkerMark.worker(of: UnsafeRawBufferPointer(rebasing: packet[ufrag]))
    }

    /// The connection at `address` has ended: nothing more can be sent there. Its peer stays until ICE gives it up, and may return on another connection.
    public func connectionEnded(_ address: SocketAddress, at now: MonotonicTime) {
        begin(at: now)
        for index in whereabouts.end(address) where tables.peers.contains(index) {
            let wasUsed = usesOnly(address, index)
            tables.peers[index].pointee.addresses.removeAll { $0 == address }
            tables.peers[index].pointee.transport.release(address)
            handleTransportEvents(of: index, at: now)
            if wasUsed { resumeVideo(of: index, at: now) }
        }
    }

    /// Whether the media of a peer goes to `address`, or nowhere. If it goes elsewhere, the speed of that connection has not changed.
    private func usesOnly(_ address: SocketAddress, _ index: Int) -> Bool {
        tables.peers[index].pointee.media.pointee.destination.map { $0 == address } ?? true
    }

    /// The reader of the connection at `address` is slow: its peer gets no video until `resumeVideo`, and then begins with a keyframe.
    public func holdVideo(to address: SocketAddress, at now: MonotonicTime) {
        begin(at: now)
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
        begin(at: now)
        if let index = whereabouts.owner(of: address), usesOnly(address, index) { resumeVideo(of: index, at: now) }
    }

    private func resumeVideo(of index: Int, at now: MonotonicTime) {
        guard let downlink = tables.peers[index].pointee.downlink, downlink.pointee.release() else { return }
        if tables.peers[index].pointee.transport.mayReceive { startSubscriptions(of: index, at: now) }
        touch(index)
    }

    /// A peer's media may take another path now: another transport, and a connection that is not the slow one.
    func noteRoute(of index: Int, at now: MonotonicTime) {
        let peer = tables.peers[index]
        guard let downlink = peer.pointee.downlink, let destination = peer.pointee.media.pointee.destination,
            downlink.pointee.follow(destination)
        else { return }
        resumeVideo(of: index, at: now)
    }
}
