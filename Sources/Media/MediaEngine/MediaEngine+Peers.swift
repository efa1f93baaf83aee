import Forwarding
import MediaControl
import PeerTransport
import Primitives

// Peers: how they come, how their addresses and names are known, how they end.

extension MediaEngine {
    func addPeer(_ description: PeerDescription, at now: MonotonicTime) -> Bool {
        guard let room = roomIndex[description.room.rawValue], peerIndex[description.id.rawValue] == nil else {
            return false
        }
        guard peers.count < configuration.maximumPeers else {
            // Whoever waits for the connection learns that it does not come.
            events.append(.peerEnded(description.id, .overloaded))
            return true
        }
        let transport = PeerTransport(description: description, context: transports, at: now)
        let uplink = Uplink(peer: description.id, feedbackSSRC: description.feedbackSSRC, profile: description.profile)
        let index = peers.insert(PeerState(description, room: room, transport: transport, uplink: uplink))
        peerIndex.set(description.id.rawValue, to: index)
        rooms[room].pointee.peerCount += 1
        addUfrag(description.localICE.ufrag, to: index)
        touch(index)
        return true
    }

    func setRemote(
        _ remote: RemoteTransport, of id: PeerID, at now: MonotonicTime, into batch: inout OutboundBatch
    ) -> Bool {
        guard let index = peerIndex[id.rawValue] else { return false }
        peers[index].pointee.transport.setRemote(remote, at: now, into: &batch)
        handleTransportEvents(of: index, at: now)
        return true
    }

    func restartICE(of id: PeerID, local: ICECredentials, at now: MonotonicTime) -> Bool {
        guard let index = peerIndex[id.rawValue] else { return false }
        peers[index].pointee.transport.restartICE(local: local, at: now)
        addUfrag(local.ufrag, to: index)
        touch(index)
        return true
    }

    /// The control plane ends a peer: close_notify goes out, and everything of it is freed.
    func closePeer(_ id: PeerID, at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        guard let index = peerIndex[id.rawValue] else { return false }
        peers[index].pointee.transport.close(at: now, into: &batch)
        handleTransportEvents(of: index, at: now)
        // A transport tells its end; should it not, the peer is gone all the same.
        if peerIndex[id.rawValue] != nil { removePeer(index, reason: .removed) }
        return true
    }

    /// Takes what the transport has to tell; the peer may be gone afterwards.
    func handleTransportEvents(of index: Int, at now: MonotonicTime) {
        let peer = peers[index]
        while peer.pointee.transport.wantsAttention, let event = peer.pointee.transport.pollEvent() {
            switch event {
            case .addressValidated(let address): claim(address, for: index)
            case .addressConsented(let address): take(address, for: index, at: now)
            case .addressReleased(let address):
                addresses.remove(address, of: index)
                contenders.remove(address, of: index)
                peer.pointee.addresses.removeAll { $0 == address }
            case .connected:
                events.append(.peerConnected(peer.pointee.id))
            case .sendingAllowed: startSubscriptions(of: index, at: now)
            case .sendingForbidden: stopSubscriptions(of: index)
            case .moved:
                events.append(.peerMoved(peer.pointee.id))
                peer.pointee.downlink?.pointee.control?.pointee.pathChanged(at: now)
            case .ufragReleased(let ufrag): removeUfrag(ufrag, of: index)
            case .ended(let reason):
                removePeer(index, reason: reason)
                return
            }
        }
        touch(index)
    }

    /// A peer has sent a check of its own from `address`. Where that is another's, it must answer the server's check before it is believed:
    /// whoever can forge a source address could take anybody's datagrams away.
    private func claim(_ address: SocketAddress, for index: Int) {
        if let owner = addresses[address], owner != index {
            contenders.set(address, to: index)
        } else {
            addresses.set(address, to: index)
        }
        let peer = peers[index]
        if !peer.pointee.addresses.contains(address) { peer.pointee.addresses.append(address) }
    }

    /// A peer has answered the server's check from `address`: whoever had it is not there any more. A client that dies and the next one
    /// behind the same port look like this.
    private func take(_ address: SocketAddress, for index: Int, at now: MonotonicTime) {
        contenders.remove(address, of: index)
        guard let owner = addresses[address], owner != index else { return }
        addresses.set(address, to: index)
        peers[owner].pointee.addresses.removeAll { $0 == address }
        peers[owner].pointee.transport.release(address)
        handleTransportEvents(of: owner, at: now)
    }

    private func removePeer(_ index: Int, reason: PeerEndReason) {
        let peer = peers[index]
        let id = peer.pointee.id
        if let downlink = peer.pointee.downlink {
            while downlink.pointee.firstSubscription >= 0 { removeSubscription(downlink.pointee.firstSubscription) }
        }
        for case let track? in peer.pointee.uplink.tracks { removeTrack(track.tag) }
        for address in peer.pointee.addresses {
            addresses.remove(address, of: index)
            contenders.remove(address, of: index)
        }
        for ufrag in peer.pointee.ufrags { ufrags.remove(ufrag.key) }
        deadlines.remove(DeadlineOwner.peer(index))
        rooms[peer.pointee.room].pointee.peerCount -= 1
        peerIndex.remove(id.rawValue)
        peers.remove(index)
        events.append(.peerEnded(id, reason))
    }

    // MARK: - User name fragments

    private func addUfrag(_ text: String, to index: Int) {
        let key = UfragKey.of(Array(text.utf8))
        guard ufrags[key] == nil else { return }
        ufrags.set(key, to: index)
        peers[index].pointee.ufrags.append((text, key))
    }

    private func removeUfrag(_ text: String, of index: Int) {
        for entry in peers[index].pointee.ufrags where entry.text == text { ufrags.remove(entry.key) }
        peers[index].pointee.ufrags.removeAll { $0.text == text }
    }
}

/// A user name fragment as one word. The server makes them, so nobody else chooses what collides; and a check with the wrong
/// password is refused by the transport whatever this says.
enum UfragKey {
    /// FNV-1a, 64 bits.
    static func of(_ bytes: [UInt8]) -> UInt64 {
        bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
    }

    /// The same over `range` of a datagram.
    static func of(_ datagram: UnsafeMutableRawBufferPointer, _ range: Range<Int>) -> UInt64 {
        var key: UInt64 = 0xcbf2_9ce4_8422_2325
        for index in range { key = (key ^ UInt64(datagram[index])) &* 0x0000_0100_0000_01b3 }
        return key
    }
}
