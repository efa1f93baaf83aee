import MediaControl
import PayloadFormats
import Primitives
import RTP

/// Renders the subscriber's packet from the stored one: header, extensions, frame numbers; the payload is copied once.
///
/// Pure: the same `SentPacket` and stored packet give the same bytes, on which a retransmission on the media SSRC relies.
struct PacketRenderer {
    /// The subscriber's negotiated parameters.
    let wire: SubscriptionWire
    /// The mapping of the packet's format.
    let mapping: FormatMapping
    /// The publisher sends one stream only.
    let isSingleStream: Bool
    /// Publisher's clock to server's clock, 32.32 fixed point; for the capture clock offset.
    let captureOffset: Int64

    /// Writes the packet and returns its length. `slot` has room for the stored packet and `RTPLayout.overhead`.
    @inline(__always)
    func write(
        _ sent: SentPacket, _ forwarded: SentPacket.Forwarded, record: UnsafePointer<PacketRecord>,
        packet: UnsafeRawBufferPointer,
        of layer: UnsafeMutablePointer<ReceiveLayer>, repeatedAs rtxSequence: UInt16?,
        into slot: UnsafeMutableRawPointer
    ) -> Int {
        let timestamp = UInt32(truncatingIfNeeded: record.pointee.timestamp) &+ forwarded.deltas.timestamp
        let marker = record.pointee.hasMarker || sent.flags.contains(.marker)
        writeHeader(sent, timestamp: timestamp, marker: marker, repeatedAs: rtxSequence, into: slot)
        let payload = UnsafeRawBufferPointer(rebasing: packet[Int(record.pointee.payloadOffset)...])
        var offset = writeExtensions(
            sent, forwarded, record: record, packet: packet, of: layer, into: slot)
        if rtxSequence != nil {
            slot.storeBytes(
                of: UInt16(truncatingIfNeeded: sent.sequence).bigEndian, toByteOffset: offset, as: UInt16.self)
            offset += RTPLayout.originalSequence
        }
        if mapping.codec == .red || mapping.stripsRED, !record.pointee.flags.contains(.opaque) {
            return offset + REDPayload.write(payload, mapping: mapping, into: slot + offset)
        }
        let joining = forwarded.mark.joining
        if mapping.codec == .av1, !joining.isEmpty {
            return pad(
                slot, length: offset + joining.write(payload, into: slot + offset), sent, repeatedAs: rtxSequence)
        }
        offset += FrameNumbers(codec: mapping.codec, payload: payload).copy(
            payload, into: slot + offset, deltas: forwarded.deltas, keyIndex: forwarded.mark.keyIndexDelta)
        return pad(slot, length: offset, sent, repeatedAs: rtxSequence)
    }

    @inline(__always)
    private func pad(
        _ slot: UnsafeMutableRawPointer, length: Int, _ sent: SentPacket, repeatedAs rtxSequence: UInt16?
    ) -> Int {
        guard sent.padding > 0, rtxSequence == nil else { return length }
        let count = Int(sent.padding)
        let room = UnsafeMutableRawBufferPointer(start: slot, count: length + count)
        return RTPPatch.pad(room, length: length, by: count) ?? length
    }

    /// The length that `write` produces before padding; nil if only writing determines it.
    @inline(__always)
    func length(
        of sent: SentPacket, _ forwarded: SentPacket.Forwarded, record: UnsafePointer<PacketRecord>
    ) -> Int? {
        guard mapping.codec != .red, !mapping.stripsRED, !forwarded.mark.hasTargets,
            mapping.codec != .av1 || forwarded.mark.joining.isEmpty
        else { return nil }
        var elements = wire.ownElements(withMID: sent.flags.contains(.mid))
        var isTwoByte = wire.hasLargeIDs
        for index in 0..<record.pointee.extensions.count {
            let place = record.pointee.extensions[index]
            guard wire.extensions[place.meaning] != 0 else { continue }
            isTwoByte = isTwoByte || place.length > 16 || place.length == 0
            guard wire.passes(place.meaning, ofSingleStream: isSingleStream) else { continue }
            elements.count &+= 1
            elements.bytes &+= Int(place.length)
        }
        var payload = record.pointee.payloadLength
        if record.pointee.summary.pictureIDOffset != 0, !record.pointee.summary.isLongPictureID,
            FrameNumbers.widens(record.pointee.summary.pictureID, of: 0x7f, by: forwarded.deltas.picture)
        {
            payload &+= 1
        }
        guard elements.count > 0 else { return RTPLayout.fixedHeader &+ payload }
        let block = elements.bytes &+ elements.count &* (isTwoByte ? 2 : 1)
        return RTPLayout.fixedHeader &+ 4 &+ (block &+ 3) & ~3 &+ payload
    }

    /// The fixed header of the media stream or, for a retransmission, of the RTX stream.
    @inline(__always)
    func writeHeader(
        _ sent: SentPacket, timestamp: UInt32, marker: Bool, repeatedAs rtxSequence: UInt16?,
        into slot: UnsafeMutableRawPointer
    ) {
        let isRepeat = rtxSequence != nil
        let payloadType = isRepeat ? mapping.rtxPayloadType : mapping.payloadType
        RTPPatch.writeFixedHeader(
            to: UnsafeMutableRawBufferPointer(start: slot, count: RTPLayout.fixedHeader), marker: marker,
            payloadType: payloadType, sequenceNumber: rtxSequence ?? UInt16(truncatingIfNeeded: sent.sequence),
            timestamp: timestamp, ssrc: isRepeat ? wire.rtxSSRC ?? wire.ssrc : wire.ssrc)
    }

    /// Writes the extension block of a stored packet; returns the offset of the payload.
    @inline(__always)
    private func writeExtensions(
        _ sent: SentPacket, _ forwarded: SentPacket.Forwarded, record: UnsafePointer<PacketRecord>,
        packet: UnsafeRawBufferPointer,
        of layer: UnsafeMutablePointer<ReceiveLayer>, into slot: UnsafeMutableRawPointer
    ) -> Int {
        let count = record.pointee.extensions.count
        var isTwoByte = wire.hasLargeIDs
        for index in 0..<count where !isTwoByte {
            let place = record.pointee.extensions[index]
            isTwoByte = (place.length > 16 || place.length == 0) && wire.extensions[place.meaning] != 0
        }
        let targets =
            forwarded.mark.hasTargets
            ? AnnouncedTargets(forwarded.mark.targets, record, packet: packet, of: layer) : nil
        isTwoByte = isTwoByte || targets?.length ?? 0 > 16
        var writer = ExtensionBlockWriter(slot: slot, isTwoByte: isTwoByte)
        writeOwn(sent, with: &writer)
        for index in 0..<count {
            let place = record.pointee.extensions[index]
            let id = wire.extensions[place.meaning]
            guard id != 0, wire.passes(place.meaning, ofSingleStream: isSingleStream) else { continue }
            if place.meaning == .dependencyDescriptor, let targets {
                let value = UnsafeMutableRawBufferPointer(
                    start: writer.element(id, length: targets.length), count: targets.length)
                targets.write(packet, place, to: value)
                DependencyDescriptorRewriter.moveFrameNumber(value, by: forwarded.deltas.frame)
                continue
            }
            let value = writer.element(id, length: Int(place.length))
            value.copyMemory(from: packet.baseAddress! + Int(place.offset), byteCount: Int(place.length))
            switch place.meaning {
            case .dependencyDescriptor:
                DependencyDescriptorRewriter.moveFrameNumber(
                    UnsafeMutableRawBufferPointer(start: value, count: Int(place.length)), by: forwarded.deltas.frame)
            case .absoluteCaptureTime:
                if place.length == 16, sent.flags.contains(.captureOffset) { moveCaptureOffset(value) }
            default: break
            }
        }
        return writer.finish()
    }

    /// Writes the extensions of this hop; a packet generated by the server has only these.
    @inline(__always)
    func writeOwn(_ sent: SentPacket, with writer: inout ExtensionBlockWriter) {
        let sendTimeID = wire.extensions[.absoluteSendTime]
        if sendTimeID != 0 {
            let value = writer.element(sendTimeID, length: 3)
            value.storeBytes(of: UInt8(truncatingIfNeeded: sent.sendTime >> 16), as: UInt8.self)
            value.storeBytes(of: UInt16(truncatingIfNeeded: sent.sendTime).bigEndian, toByteOffset: 1, as: UInt16.self)
        }
        let transportID = wire.extensions[.transportSequence]
        if transportID != 0 {
            writer.element(transportID, length: 2).storeBytes(of: sent.transportSequence.bigEndian, as: UInt16.self)
        }
        if let delay = wire.ownPlayoutDelay {
            let value = writer.element(wire.extensions[.playoutDelay], length: 3)
            value.storeBytes(of: UInt8(truncatingIfNeeded: delay >> 16), as: UInt8.self)
            value.storeBytes(of: UInt16(truncatingIfNeeded: delay).bigEndian, toByteOffset: 1, as: UInt16.self)
        }
        if sent.flags.contains(.mid), wire.extensions[.mid] != 0, wire.midLength > 0 {
            let value = writer.element(wire.extensions[.mid], length: Int(wire.midLength))
            withUnsafeBytes(of: wire.mid) { value.copyMemory(from: $0.baseAddress!, byteCount: Int(wire.midLength)) }
        }
    }

    /// The second half of abs-capture-time is the offset from the capturer's clock to the clock of this stream's sender reports, which
    /// use the server's clock.
    private func moveCaptureOffset(_ value: UnsafeMutableRawPointer) {
        let old = Int64(bitPattern: UInt64(bigEndian: value.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
        value.storeBytes(of: UInt64(bitPattern: old &+ captureOffset).bigEndian, toByteOffset: 8, as: UInt64.self)
    }
}
