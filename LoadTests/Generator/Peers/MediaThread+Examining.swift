import Glibc
import Primitives
import RTP

/// Where the media bytes of a VP8 payload begin, and what its descriptor numbers (RFC 7741 section 4.2). The generator has its own reader, because its checks
/// of the server's packets must not share the server's faults.
struct VP8Descriptor {
    var length = 1
    var startsFrame: Bool
    var picture: UInt16?
    var level: UInt8?

    init?(_ payload: UnsafeRawBufferPointer) {
        guard payload.count > 6 else { return nil }
        startsFrame = payload[0] & 0x1f == 0x10
        guard payload[0] & 0x80 != 0 else { return }
        let flags = payload[1]
        length = 2
        if flags & 0x80 != 0 {
            let isLong = payload[2] & 0x80 != 0
            picture = isLong ? (UInt16(payload[2]) << 8 | UInt16(payload[3])) & 0x7fff : UInt16(payload[2])
            length += isLong ? 2 : 1
        }
        if flags & 0x40 != 0 {
            level = payload[length]
            length += 1
        }
        if flags & 0x30 != 0 { length += 1 }
    }
}

extension MediaThread {
    /// Examines a decrypted packet: which one it is, whether it is unchanged, and what it shows.
    func examine(
        _ packet: UnsafeMutableRawBufferPointer, _ sequence: Int64, _ stream: ReceiveStream, _ peer: Peer,
        at time: Int64
    ) {
        let raw = UnsafeRawBufferPointer(packet)
        guard let header = RTPHeader(raw.bytes) else {
            counters.corrupted &+= 1
            return
        }
        guard header.payloadLength > 0 else {
            counters.padding &+= 1
            // The packet has a number that the source does not know.
            stream.counterOffset += 1
            stream.assembler?.skip(sequence)
            return
        }
        let end = header.payloadOffset + header.payloadLength
        let payload = UnsafeRawBufferPointer(rebasing: raw[header.payloadOffset..<end])
        compare(payload, header, sequence, stream)
        switch stream.format {
        case .vp8: showVP8(payload, header, sequence, stream, peer)
        case .h264: showH264(payload, header, sequence, stream, peer)
        case .opus where !peer.plan.expectsVideo: noteFirstFrame(peer)
        default: break
        }
    }

    private func compare(
        _ payload: UnsafeRawBufferPointer, _ header: RTPHeader, _ sequence: Int64, _ stream: ReceiveStream
    ) {
        counters.verified &+= 1
        let trace =
            payload.count > Trace.length
            ? payload.baseAddress.flatMap { Trace($0 + payload.count - Trace.length) } : nil
        if let trace { follow(trace, header, sequence, stream) }
        guard let source = stream.source else { return }
        let counter = UInt32(truncatingIfNeeded: sequence - stream.counterOffset)
        if matches(payload, counter, source, hasTrace: trace != nil) { return }
        // The numbering may have moved since the last trace: the frame's end will show it.
        if trace != nil || header.marker || stream.format == .opus {
            counters.corrupted &+= 1
        } else if stream.suspects.count < 64 {
            stream.suspects.append((sequence, Array(payload)))
        }
    }

    /// Applies what a trace says about the numbering.
    private func follow(_ trace: Trace, _ header: RTPHeader, _ sequence: Int64, _ stream: ReceiveStream) {
        guard Int(trace.stream) < sendStreams.count, let source = sendStreams[Int(trace.stream)] else { return }
        let offset = sequence - Int64(trace.counter)
        if stream.source === source, offset < stream.counterOffset {
            counters.skipped &+= UInt64(stream.counterOffset - offset)
        }
        stream.source = source
        stream.counterOffset = offset
        if let entry = source.entry(trace.counter) { stream.timestampOffset = header.timestamp &- entry.timestamp }
        for suspect in stream.suspects {
            let counter = UInt32(truncatingIfNeeded: suspect.sequence - offset)
            let isGood = suspect.payload.withUnsafeBytes { matches($0, counter, source, hasTrace: false) }
            if !isGood { counters.corrupted &+= 1 }
        }
        stream.suspects.removeAll(keepingCapacity: true)
    }

    /// Whether a payload is that of the source's packet `counter`, except for what a server may rewrite.
    private func matches(
        _ payload: UnsafeRawBufferPointer, _ counter: UInt32, _ source: SendStream, hasTrace: Bool
    ) -> Bool {
        guard let entry = source.entry(counter) else { return false }
        let packet = source.loop.packets[Int(entry.loopIndex)]
        let descriptor = source.loop.kind == .vp8 ? VP8Descriptor(payload)?.length ?? 0 : 0
        let fixed = packet.fixed
        guard packet.endsFrame == hasTrace else { return false }
        guard payload.count - descriptor == packet.length - packet.descriptorLength else { return false }
        return source.loop.memory.withUnsafeBytes { memory in
            guard let own = memory.baseAddress, let other = payload.baseAddress else { return false }
            return memcmp(own + packet.offset + fixed.lowerBound, other + descriptor, fixed.count) == 0
        }
    }

    private func showVP8(
        _ payload: UnsafeRawBufferPointer, _ header: RTPHeader, _ sequence: Int64, _ stream: ReceiveStream, _ peer: Peer
    ) {
        guard let descriptor = VP8Descriptor(payload) else { return }
        if descriptor.startsFrame, let picture = descriptor.picture, let level = descriptor.level {
            let follows = stream.pictures.note(picture: picture, level: level, at: sequence)
            if !follows { counters.pictureJumps &+= 1 }
        } else {
            stream.pictures.extend(to: sequence)
        }
        assemble(
            UnsafeRawBufferPointer(rebasing: payload[descriptor.length...]), sequence, stream, peer,
            starts: descriptor.startsFrame, isKey: descriptor.startsFrame && payload[descriptor.length] & 1 == 0,
            ends: header.marker)
    }

    private func showH264(
        _ payload: UnsafeRawBufferPointer, _ header: RTPHeader, _ sequence: Int64, _ stream: ReceiveStream, _ peer: Peer
    ) {
        guard stream.assembler != nil, let part = H264Payload(payload) else { return }
        part.stream.withUnsafeBytes {
            assemble(
                $0, sequence, stream, peer, starts: part.startsFrame, isKey: part.isKey, ends: header.marker)
        }
    }

    private func assemble(
        _ bytes: UnsafeRawBufferPointer, _ sequence: Int64, _ stream: ReceiveStream, _ peer: Peer, starts: Bool,
        isKey: Bool, ends: Bool
    ) {
        guard let assembler = stream.assembler else { return }
        let before = (assembler.frames, assembler.decoded, assembler.broken)
        assembler.add(bytes, sequence: sequence, starts: starts, isKey: isKey, ends: ends)
        counters.framesDecoded &+= assembler.decoded - before.1
        counters.framesBroken &+= assembler.broken - before.2
        if assembler.frames > before.0 {
            noteFirstFrame(peer)
            if !peer.plan.decodes { stream.assembler = nil }
        }
    }

    private func noteFirstFrame(_ peer: Peer) {
        guard !peer.hasFrame else { return }
        peer.hasFrame = true
        firstFrameTimes.add(now - peer.plan.startedAt)
    }
}
