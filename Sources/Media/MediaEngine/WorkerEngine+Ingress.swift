import Forwarding
import MediaControl
import PeerTransport
public import Primitives
import RTP

// Steps 2 to 4 of a packet's way: find its peer, classify it, and store it in the track's history.

extension WorkerEngine {
    /// Processes one datagram; it is decrypted in place. Forwarding happens in `endTurn`.
    public func receive(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: MonotonicTime,
        into batch: inout OutboundBatch
    ) {
        begin(at: now)
        counters.packetsReceived &+= 1
        counters.bytesReceived &+= UInt64(datagram.count)
        guard
            let index = whereabouts.owner(of: source)
                ?? findUnknown(datagram, from: source, at: now, into: &batch)
        else { return }
        let peer = tables.peers[index]
        peer.pointee.packetsReceived &+= 1
        peer.pointee.bytesReceived &+= UInt64(datagram.count)
        // In two steps: Swift 6.3.1 breaks under the thread sanitizer where the peer's state is the base of this access.
        let media = peer.pointee.media
        if let received = media.pointee.receive(datagram, from: source, at: now) {
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
    /// RTCP are dropped and counted: players would show old frames, and a report would suggest that its sender's clock is slow. STUN
    /// and DTLS are processed as usual.
    public func receiveLate(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: MonotonicTime,
        into batch: inout OutboundBatch
    ) {
        guard datagram.count >= 2, DatagramKind(firstByte: datagram[0]) == .media else {
            return receive(datagram, from: source, at: now, into: &batch)
        }
        begin(at: now)
        counters.packetsReceived &+= 1
        counters.bytesReceived &+= UInt64(datagram.count)
        counters.drops.count(.receivedLate)
        guard let index = whereabouts.owner(of: source), !RTCPType.contains(datagram[1]) else { return }
        tables.peers[index].pointee.uplink.interrupted()
        touchByMedia(index)
    }

    /// Processes datagrams that are not media from the media address, or whose cipher only the transport handles.
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
            let finding = whereabouts.findAnother(
                than: index, for: datagram, from: source, because: reason, in: tables, at: now)
            if let other = found(finding) {
                receiveByTransport(datagram, from: source, of: other, at: now, into: &batch)
            }
        }
        if transport.wantsAttention {
            handleTransportEvents(of: index, at: now)
        } else if datagram.isEmpty || datagram[0] < 128 {
            touch(index)
        }
    }

    /// The peer of a datagram from an unknown address; nil: it is processed already, or dropped and counted.
    private func findUnknown(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: MonotonicTime,
        into batch: inout OutboundBatch
    ) -> Int? {
        if datagram.count >= 12, DatagramKind(firstByte: datagram[0]) == .media,
            receiveRemapped(datagram, from: source, at: now, into: &batch)
        {
            return nil
        }
        return found(whereabouts.find(datagram, from: source, in: tables, at: now))
    }

    /// Processes media from an unknown address if it is authentic media of a peer at the same host, whose NAT has assigned it another port; false: it is not.
    private func receiveRemapped(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: MonotonicTime,
        into batch: inout OutboundBatch
    ) -> Bool {
        let candidates = whereabouts.remappingCandidates(for: source, in: tables, at: now)
        guard !candidates.isEmpty else { return false }
        return withUnsafeTemporaryAllocation(byteCount: datagram.count, alignment: 16) { copy -> Bool in
            copy.copyMemory(from: UnsafeRawBufferPointer(datagram))
            for index in candidates {
                let peer = tables.peers[index]
                let transport = peer.pointee.transport
                guard let received = transport.receiveRemapped(datagram, from: source, at: now, into: &batch) else {
                    // Decrypting with the wrong key has left other bytes.
                    datagram.copyMemory(from: UnsafeRawBufferPointer(copy))
                    continue
                }
                peer.pointee.packetsReceived &+= 1
                peer.pointee.bytesReceived &+= UInt64(datagram.count)
                if case .rtp(let length) = received { receiveRTP(datagram, length, of: index, at: now) }
                if case .rtcp(let length) = received { receiveRTCP(datagram, length, of: index, at: now) }
                handleTransportEvents(of: index, at: now)
                return true
            }
            return false
        }
    }

    /// The peer that was found for a datagram; nil: dropped, and counted here.
    private func found(_ finding: Whereabouts.Finding) -> Int? {
        switch finding {
        case .peer(let index): return index
        case .dropped(let reason):
            counters.drops.count(reason)
            return nil
        }
    }

    @inline(__always)
    func receiveRTP(
        _ datagram: UnsafeMutableRawBufferPointer, _ length: Int, of index: Int, at now: MonotonicTime
    ) {
        tables.peers[index].pointee.media.pointee.capture(
            datagram, length: length, isSent: false, isRTCP: false, at: now)
        var track: PublishedTrack?
        let result = tables.peers[index].pointee.uplink.receiveRTP(datagram, length: length, at: now, track: &track)
        if tables.peers[index].pointee.uplink.hasSourceChanges { reportSourceChanges(of: index) }
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

    // MARK: - What the server plays

    // Unencrypted packets of a peer without a transport; from step 4 on they are handled like those of every published track.

    /// Processes one packet of a peer with the profile `player`, in place. Packets for an unknown peer, which may have been removed meanwhile, are dropped and
    /// counted.
    public func receivePlayed(
        _ packet: UnsafeMutableRawBufferPointer, isRTCP: Bool, of id: PeerID, at now: MonotonicTime
    ) {
        begin(at: now)
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

    /// Lets a player's uplink notice silence; its feedback is discarded, because nothing can be requested from a file.
    func advancePlayer(_ index: Int, at now: MonotonicTime) {
        let uplink = tables.peers[index].pointee.uplink
        withUnsafeTemporaryAllocation(byteCount: Self.unsentReport, alignment: 8) { buffer in
            while uplink.nextDeadline <= now, uplink.advance(to: now, feedback: buffer) > 0 {}
        }
        if uplink.hasEvents { receive(uplink.consumeEvents(), at: now) }
    }

    /// As long as any report that is sent.
    private static let unsentReport = 1_200

    // MARK: - Prefetching

    // Between two turns other threads and the kernel use the caches: a peer's packet or report touches some fifty cache lines in eight places,
    // each a tenth of a microsecond away.

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
}
