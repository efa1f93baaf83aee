import Primitives
import RTP

/// Any datagram as RTP: header, extensions and their values, retransmission both ways.
func fuzzRTP(_ input: UnsafeRawBufferPointer) {
    let packet = input.bytes
    guard let header = RTPHeader(packet) else { return }
    precondition(header.packetLength == input.count, "the parts of a packet add up to it")
    readExtensions(header, packet)
    repeatAndRestore(header, input)
}

private func readExtensions(_ header: RTPHeader, _ packet: RawSpan) {
    var elements = RTPHeaderExtensions(header)
    while let element = elements.next(in: packet) {
        precondition(element.offset + element.length <= header.payloadOffset, "elements end before the payload")
        _ = AudioLevel(element, in: packet)
        _ = VideoOrientation(element, in: packet)
        _ = AbsoluteSendTime(element, in: packet)
        _ = TransportSequenceNumber(element, in: packet)
        _ = VideoLayersAllocation(element, in: packet)
        _ = element.text(in: packet)
    }
}

private func repeatAndRestore(_ header: RTPHeader, _ bytes: UnsafeRawBufferPointer) {
    let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count + RTX.overhead, alignment: 8)
    defer { slot.deallocate() }
    slot.copyMemory(from: bytes)
    guard
        let length = RTX.wrap(
            slot, length: bytes.count, payloadOffset: header.payloadOffset, ssrc: 1, payloadType: 97,
            sequenceNumber: 2)
    else { preconditionFailure("there was room") }
    guard let wrapped = RTPHeader(slot.bytes) else { preconditionFailure("a wrapped packet is a packet") }
    precondition(length == slot.count, "a wrapped packet is two bytes longer")
    guard
        let restored = RTX.unwrap(slot, header: wrapped, ssrc: header.ssrc, payloadType: header.payloadType)
    else { preconditionFailure("what was wrapped can be unwrapped") }
    precondition(restored == header.payloadOffset + header.payloadLength, "it comes back without padding")
    for index in 1..<restored { precondition(slot[index] == bytes[index], "byte \(index) came back") }
}
