import Primitives
import RTP
import Simulation

/// Elements of a header extension: pairs of id and record. They are written, read, understood, and their values written again.
func fuzzExtensions(_ input: UnsafeRawBufferPointer) {
    var input = FuzzInput(input)
    let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: 700, alignment: 8)
    defer { slot.deallocate() }
    slot.initializeMemory(as: UInt8.self, repeating: 0)
    slot[0] = 0x80
    let mode = input.byte()
    var writer = HeaderExtensionWriter(
        slot, at: RTPHeader.fixedLength, twoByte: mode & 1 != 0, allowsTwoByte: mode & 2 != 0)
    var written: [(id: UInt8, length: Int)] = []
    while !input.isEmpty {
        let id = input.byte()
        let value = input.record()
        if writer.append(id: id, copying: value.bytes, offset: 0, length: min(value.count, 255)) {
            written.append((id, min(value.count, 255)))
        }
    }
    let end = writer.finish()
    let packet = UnsafeRawBufferPointer(rebasing: slot[..<end])
    guard let header = RTPHeader(packet.bytes) else { preconditionFailure("what was written is a packet") }
    var elements = RTPHeaderExtensions(header)
    var index = 0
    while let element = elements.next(in: packet.bytes) {
        precondition(element.id == written[index].id && element.length == written[index].length, "as written")
        checkValues(element, packet)
        index += 1
    }
    precondition(index == written.count, "all that was written is read")
}

/// Values that are written again are the same bytes, up to reserved bits.
private func checkValues(_ element: RTPHeaderExtensions.Element, _ bytes: UnsafeRawBufferPointer) {
    let packet = bytes.bytes
    bytes.withCopy { copy in
        let again = UnsafeRawBufferPointer(copy)
        if let value = AudioLevel(element, in: packet) {
            value.write(to: copy, at: element.offset)
            precondition(AudioLevel(element, in: again.bytes) == value)
        }
        if let value = VideoOrientation(element, in: packet) {
            value.write(to: copy, at: element.offset)
            precondition(VideoOrientation(element, in: again.bytes) == value)
        }
        if let value = AbsoluteSendTime(element, in: packet) {
            value.write(to: copy, at: element.offset)
            precondition(AbsoluteSendTime(element, in: again.bytes) == value)
            precondition(value.interval(since: AbsoluteSendTime(value: 0)) < .seconds(33))
        }
        if let value = TransportSequenceNumber(element, in: packet) {
            value.write(to: copy, at: element.offset)
            precondition(TransportSequenceNumber(element, in: again.bytes) == value)
        }
        if let value = VideoLayersAllocation(element, in: packet) {
            precondition(value.layerCount <= 16 && value.streamCount <= 4)
            for index in 0..<value.layerCount { precondition((1...4).contains(value.layers[index].temporalLayers)) }
        }
        _ = element.text(in: packet)
    }
}
