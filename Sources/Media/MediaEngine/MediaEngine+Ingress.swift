import Forwarding
import MediaControl
import PeerTransport
public import Primitives
import RTP

// Steps 2 to 4 of a packet's way: find its peer, classify it, and store it in the track's history.

extension MediaEngine {
    /// Processes one datagram; it is decrypted in place. Forwarding happens in `endTurn`.
    public func receive(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: MonotonicTime,
        into batch: inout OutboundBatch
    ) {
        clock = now
        abandonOpenTurn()
        counters.packetsReceived &+= 1
        counters.bytesReceived &+= UInt64(datagram.count)
        guard let index = whereabouts.owner(of: source) ?? findByUfrag(datagram, from: source, at: now) else { return }
        let peer = tables.peers[index]
        peer.pointee.packetsReceived &+= 1
        peer.pointee.bytesReceived &+= UInt64(datagram.count)
        if let received = peer.pointee.media.pointee.receive(datagram, from: source, at: now) {
            switch received {
            case .rtp(let length): receiveRTP(datagram, length, of: index, at: now)
            case .rtcp(let length): receiveRTCP(datagram, length, of: index, at: now)
            case .nothing: break
            case .dropped(let reason): counters.drops.count(reason)
            }
        } else {
            receiveByTransport(datagram, from: source, of: index, at: now, into: &batch)
        }
    }

    /// Processes a datagram that has waited in its socket for longer than media is useful, because the process was stalled. RTP and
    /// RTCP are dropped and counted: players would show the past, and a report would suggest that its sender's clock is slow. STUN
    /// and DTLS are processed as usual.
    public func receiveLate(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: MonotonicTime,
        into batch: inout OutboundBatch
    ) {
        guard datagram.count >= 2, datagram[0] & 0xc0 == 0x80 else {
            return receive(datagram, from: source, at: now, into: &batch)
        }
        clock = now
        abandonOpenTurn()
        counters.packetsReceived &+= 1
        counters.bytesReceived &+= UInt64(datagram.count)
        counters.drops.count(.receivedLate)
        guard let index = whereabouts.owner(of: source), datagram[1] & 0xe0 != 0xc0 else { return }
        tables.peers[index].pointee.uplink.interrupted()
        touchByMedia(index)
    }

    /// Processes what is not media from the media address, or uses a cipher that only the transport handles.
    private func receiveByTransport(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, of index: Int, at now: MonotonicTime,
        into batch: inout OutboundBatch
    ) {
        let transport = tables.peers[index].pointee.transport
        switch transport.receive(datagram, from: source, at: now, into: &batch) {
        case .rtp(let length): receiveRTP(datagram, length, of: index, at: now)
        case .rtcp(let length): receiveRTCP(datagram, length, of: index, at: now)
        case .nothing: break
        case .dropped(let reason):
            if let other = findAnother(than: index, for: datagram, from: source, because: reason, at: now) {
                receiveByTransport(datagram, from: source, of: other, at: now, into: &batch)
            }
        }
        if transport.wantsAttention {
            handleTransportEvents(of: index, at: now)
        } else if datagram.isEmpty || datagram[0] < 128 {
            touch(index)
        }
    }

    /// Finds the peer for a datagram that `owner` cannot use: a check for another's user name, or the answer to another's check.
    /// nil: dropped and counted, and recorded against its source if it was forged.
    private func findAnother(
        than owner: Int, for datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress,
        because reason: DropReason, at now: MonotonicTime
    ) -> Int? {
        switch reason {
        case .stunUnknownUfrag:
            guard let other = findByUfrag(datagram, from: source, at: now) else { return nil }
            if other != owner { return other }
        case .stunUnexpected:
            if let other = whereabouts.contender(at: source), other != owner { return other }
        case .stunUnauthorized:
            if whereabouts.owner(of: source) != owner { strangers.failed(source, for: owner, at: now) }
        default: break
        }
        counters.drops.count(reason)
        return nil
    }

    /// Whether the engine has any peers.
    public var hasPeers: Bool { tables.peers.count > 0 }

    /// Whether datagrams from `source` belong to a peer.
    public func knows(_ source: SocketAddress) -> Bool { whereabouts.owner(of: source) != nil }

    /// Finds the peer for a datagram from an unknown address: only a STUN check with a known user name fragment is processed,
    /// and only a limited number per second: see `StrangerLimits`. nil: dropped and counted.
    private func findByUfrag(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: MonotonicTime
    ) -> Int? {
        guard configuration.admits(source),
            let range = TransportPeek.localUfrag(of: UnsafeRawBufferPointer(datagram).bytes)
        else {
            counters.drops.count(.unknownSource)
            return nil
        }
        guard let index = whereabouts.peer(ofUfrag: UfragKey.of(datagram, range)) else {
            counters.drops.count(.stunUnknownUfrag)
            return nil
        }
        guard
            strangers.admit(
                source, for: index, own: &tables.peers[index].pointee.strangers,
                limit: configuration.strangerChecksPerSecond,
                at: now)
        else {
            counters.drops.count(.stunThrottled)
            return nil
        }
        return index
    }

    @inline(__always)
    private func receiveRTP(
        _ datagram: UnsafeMutableRawBufferPointer, _ length: Int, of index: Int, at now: MonotonicTime
    ) {
        var track: PublishedTrack?
        let result = tables.peers[index].pointee.uplink.receiveRTP(datagram, length: length, at: now, track: &track)
        if tables.peers[index].pointee.uplink.hasSourceChanges { tellSourceChanges(of: index) }
        touchByMedia(index)
        switch result {
        case .stored:
            // RFC 3550 section 5.1: the marker ends a video frame, and any audio packet is complete.
            if let track { noteOpen(track.tag, datagram[1] & 0x80 == 0) }
        case .gap(_, _, let reason): counters.drops.count(reason)
        case .dropped(let reason):
            counters.drops.count(reason)
            return
        }
        if let track { markDirty(track.tag) }
    }

    /// Records whether the track's last packet leaves a frame incomplete that at least two subscribers get.
    @inline(__always) private func noteOpen(_ track: Int, _ isAmid: Bool) {
        let state = tables.tracks[track]
        let first = state.pointee.firstSubscription
        let isOpen =
            isAmid && state.pointee.isVideo && first >= 0 && tables.subscriptions[first].pointee.nextOfTrack >= 0
        guard isOpen != state.pointee.isOpen else { return }
        state.pointee.isOpen = isOpen
        turn.openFrames &+= isOpen ? 1 : -1
    }

    private func receiveRTCP(
        _ datagram: UnsafeMutableRawBufferPointer, _ length: Int, of index: Int, at now: MonotonicTime
    ) {
        let packet = UnsafeRawBufferPointer(rebasing: datagram[..<length])
        if isTransportFeedback(packet), tables.peers[index].pointee.downlink != nil {
            receiveFeedback(packet, of: index, at: now)
            return lookAfter(index, at: now)
        }
        tables.peers[index].pointee.uplink.receiveRTCP(packet.bytes, at: now)
        noteCaptureOffset(of: index)
        if tables.peers[index].pointee.downlink != nil { receiveFeedback(packet, of: index, at: now) }
        touchByMedia(index)
    }

    /// Whether a compound contains only transport-wide feedback, as twenty per second from each subscriber do: nothing in it
    /// concerns the uplink.
    @inline(__always) private func isTransportFeedback(_ packet: UnsafeRawBufferPointer) -> Bool {
        // draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1: format 15 of type 205.
        packet[0] & 0x1f == 15 && packet[1] == 205
            && 4 &* (Int(packet[2]) << 8 | Int(packet[3])) &+ 4 == packet.count
    }

    /// Schedules the peer for the end of the turn if feedback has caused work, which is seldom; otherwise only its downlink's deadline
    /// can have changed.
    @inline(__always) private func lookAfter(_ index: Int, at now: MonotonicTime) {
        guard let downlink = tables.peers[index].pointee.downlink else { return }
        let next = downlink.pointee.nextDeadline(at: now)
        guard next > now else { return touchByMedia(index) }
        deadlines.hasten(DeadlineOwner.peer(index), to: next)
    }

    /// The first sender report fixes the offset of the publisher's clock to the server's, for all its streams.
    private func noteCaptureOffset(of index: Int) {
        let peer = tables.peers[index]
        guard peer.pointee.captureOffset == nil, peer.pointee.trackCount > 0 else { return }
        for case let track? in peer.pointee.uplink.tracks {
            for layer in 0..<track.layerCount {
                guard let clock = track.layer(layer).pointee.clock else { continue }
                peer.pointee.captureOffset = Int64(bitPattern: NTPTime.at(clock.arrival) &- clock.ntp)
                return tellCaptureOffset(of: index)
            }
        }
    }

    private func tellCaptureOffset(of index: Int) {
        let peer = tables.peers[index]
        for case let track? in peer.pointee.uplink.tracks {
            for state in tables.subscriptions(ofTrack: track.tag) {
                state.pointee.subscription.captureOffset = peer.pointee.captureOffset
                // Lip sync needs the first report soon.
                if state.pointee.isReady { scheduleReports(of: state.pointee.peer, at: .zero) }
            }
        }
    }

    /// The track has packets for its subscribers at the end of the turn.
    @inline(__always) func markDirty(_ track: Int) {
        let state = tables.tracks[track]
        guard !state.pointee.isDirty else { return }
        state.pointee.isDirty = true
        turn.dirtyTracks.append(Int32(truncatingIfNeeded: track))
    }

    /// The peer's deadlines and feedback are processed at the end of the turn.
    @inline(__always) func touch(_ peer: Int) {
        tables.peers[peer].pointee.isTransportTouched = true
        touchByMedia(peer)
    }

    /// The same, after an event that cannot have brought a deadline of the transport forward.
    @inline(__always) func touchByMedia(_ peer: Int) {
        let state = tables.peers[peer]
        guard !state.pointee.isTouched else { return }
        state.pointee.isTouched = true
        turn.touchedPeers.append(Int32(truncatingIfNeeded: peer))
    }
}
