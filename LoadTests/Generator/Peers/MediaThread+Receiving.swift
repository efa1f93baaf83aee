import Primitives
import RTP
import Simulation

extension MediaThread {
    /// Receives one datagram from the server.
    func receive(
        _ datagram: UnsafeMutableRawBufferPointer, _ peer: Peer, at time: Int64
    ) {
        guard datagram.count >= 2, !peer.isEnded else { return }
        var time = time
        if !peer.hasPerfectLink, !passes(datagram.count, peer, &time) {
            counters.linkDropped &+= 1
            return
        }
        let isMedia = DatagramKind(firstByte: datagram[0]) == .media && !RTCPType.contains(datagram[1])
        if isMedia, peer.isConnected { return receiveRTP(datagram, peer, at: time) }
        let received = peer.transport.receive(
            datagram, from: peer.plan.destination, at: MonotonicTime(nanoseconds: now), into: &batch)
        switch received {
        case .rtcp(let length):
            receiveRTCP(UnsafeMutableRawBufferPointer(rebasing: datagram[0..<length]), peer, at: min(time, now))
        case .dropped(let reason):
            if reason == .srtpAuthentication {
                counters.unauthentic &+= 1
            } else if peer.isConnected {
                counters.unexplained &+= 1
            }
        case .nothing, .rtp: noteTransport(peer)
        }
    }

    /// The scenario's link: random loss and a bottleneck with a queue. Packets that it delays keep their order and get
    /// the later time.
    private func passes(_ bytes: Int, _ peer: Peer, _ time: inout Int64) -> Bool {
        let link = peer.plan.link
        if isLost(link.lossDown, peer) { return false }
        guard link.rateDown > 0 else { return true }
        let start = max(time, peer.linkBusyUntil)
        guard start - time <= Int64(link.queueMilliseconds) * 1_000_000 else { return false }
        peer.linkBusyUntil = start + Int64(bytes + 28) * 8 * 1_000_000_000 / Int64(link.rateDown)
        time = peer.linkBusyUntil
        return true
    }

    private func receiveRTP(_ datagram: UnsafeMutableRawBufferPointer, _ peer: Peer, at time: Int64) {
        guard let header = RTPHeader(protected: datagram) else {
            counters.unexplained &+= 1
            return
        }
        peer.silence?.note(at: time)
        if peer.transportSequenceID != 0 { noteArrival(datagram, header, peer, at: time) }
        if let stream = peer.stream(header.ssrc), stream.payloadType == header.payloadType {
            return receiveMedia(datagram, header, stream, peer, at: time)
        }
        guard let format = peer.receives[header.payloadType] else {
            counters.unexplained &+= 1
            return
        }
        if case .rtx(let payloadType) = format { return receiveRepeat(datagram, of: payloadType, peer, at: time) }
        let stream = peer.stream(header.ssrc) ?? makeStream(header, format, peer, at: time)
        stream.payloadType = header.payloadType
        receiveMedia(datagram, header, stream, peer, at: time)
    }

    private func noteArrival(
        _ datagram: UnsafeMutableRawBufferPointer, _ header: RTPHeader, _ peer: Peer, at time: Int64
    ) {
        let bytes = UnsafeRawBufferPointer(datagram).bytes
        guard let element = RTPHeaderExtensions.find(peer.transportSequenceID, header, in: bytes),
            let number = TransportSequenceNumber(element, in: bytes)
        else { return }
        peer.arrivals.add(number.value, bytes: datagram.count, at: MonotonicTime(nanoseconds: time))
        guard !peer.feedbackScheduled else { return }
        peer.feedbackScheduled = true
        schedule(.feedback, peer.index, at: now + 50_000_000)
    }

    private func makeStream(
        _ header: RTPHeader, _ format: ReceivedFormat, _ peer: Peer, at time: Int64
    ) -> ReceiveStream {
        let stream = ReceiveStream(ssrc: header.ssrc, payloadType: header.payloadType, format: format, now: time)
        if format.isVideo, peer.plan.decodes || !peer.hasFrame {
            stream.assembler = FramePlayer(format == .vp8 ? .vp8 : .h264, decodes: peer.plan.decodes)
        }
        peer.add(stream)
        return stream
    }

    private func receiveMedia(
        _ datagram: UnsafeMutableRawBufferPointer, _ header: RTPHeader, _ stream: ReceiveStream, _ peer: Peer,
        at time: Int64
    ) {
        let sequence = stream.extended(header.sequenceNumber)
        switch stream.note(sequence, at: time) {
        case .duplicate:
            counters.duplicates &+= 1
            return
        case .newest(let missing):
            if missing > 0 { noteGap(stream, peer) }
        case .late:
            counters.reordered &+= 1
            stream.missing.removeAll { $0.sequence == sequence }
        case .jump(let missing):
            counters.jumps &+= 1
            counters.lost &+= UInt64(missing)
        }
        if header.marker || stream.format == .opus { stream.noteTransit(timestamp: header.timestamp, at: time) }
        count(datagram.count, header, sequence, stream, at: time)
        guard mustDecrypt(datagram, header, sequence, stream, peer) else { return }
        switch peer.transport.receive(
            datagram, from: peer.plan.destination, at: MonotonicTime(nanoseconds: now), into: &batch)
        {
        case .rtp(let length):
            examine(UnsafeMutableRawBufferPointer(rebasing: datagram[0..<length]), sequence, stream, peer, at: time)
        case .dropped(.srtpAuthentication): counters.unauthentic &+= 1
        default: counters.unexplained &+= 1
        }
    }

    /// Counts a media packet and, if its number identifies it, its delay.
    private func count(
        _ bytes: Int, _ header: RTPHeader, _ sequence: Int64, _ stream: ReceiveStream, at time: Int64
    ) {
        counters.received &+= 1
        counters.receivedBytes &+= UInt64(bytes)
        guard let source = stream.source,
            let entry = source.entry(UInt32(truncatingIfNeeded: sequence - stream.counterOffset)),
            header.timestamp &- entry.timestamp == stream.timestampOffset
        else { return }
        delay.add(time - entry.time)
    }

    /// Whether the packet must be decrypted: always if everything is compared, otherwise if it is needed to know the numbering, to show a frame, or to
    /// keep SRTP's rollover count.
    private func mustDecrypt(
        _ datagram: UnsafeMutableRawBufferPointer, _ header: RTPHeader, _ sequence: Int64, _ stream: ReceiveStream,
        _ peer: Peer
    ) -> Bool {
        if peer.verifies || stream.source == nil || stream.assembler != nil { return true }
        if datagram[0] & 0x20 != 0, datagram.count < 300 { return true }
        let ends = header.marker || stream.format == .opus
        return ends && sequence & 63 < 2
    }

    /// Receives a retransmission: the number inside identifies the packet.
    private func receiveRepeat(
        _ datagram: UnsafeMutableRawBufferPointer, of payloadType: UInt8, _ peer: Peer, at time: Int64
    ) {
        guard
            case .rtp(let length) = peer.transport.receive(
                datagram, from: peer.plan.destination, at: MonotonicTime(nanoseconds: now), into: &batch)
        else {
            counters.unauthentic &+= 1
            return
        }
        let packet = UnsafeMutableRawBufferPointer(rebasing: datagram[0..<length])
        let bytes = UnsafeRawBufferPointer(packet).bytes
        guard let header = RTPHeader(bytes), let number = RTX.originalSequenceNumber(header, in: bytes) else {
            counters.padding &+= 1
            return
        }
        guard let stream = peer.stream(missing: number, of: payloadType) else {
            // Bandwidth probes retransmit what has long arrived.
            counters.padding &+= 1
            return
        }
        let sequence = stream.extended(number)
        guard case .late = stream.note(sequence, at: time) else { return }
        stream.missing.removeAll { $0.sequence == sequence }
        counters.recovered &+= 1
        counters.received &+= 1
        counters.receivedBytes &+= UInt64(datagram.count)
        guard
            let original = RTX.unwrap(packet, header: header, ssrc: stream.ssrc, payloadType: stream.payloadType)
        else { return }
        examine(UnsafeMutableRawBufferPointer(rebasing: packet[0..<original]), sequence, stream, peer, at: time)
    }
}

extension RTPHeader {
    /// The header of a packet that is still protected: its padding count is not readable yet.
    init?(protected packet: UnsafeMutableRawBufferPointer) {
        let first = packet[0]
        packet[0] = first & ~0x20
        self.init(UnsafeRawBufferPointer(packet).bytes)
        packet[0] = first
    }
}
