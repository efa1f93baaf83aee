import PayloadFormats
import Primitives

/// Any payload of any codec: the first byte chooses the codec (low bits) and the marker (high bit).
func fuzzPayload(_ input: UnsafeRawBufferPointer) {
    guard let first = input.first else { return }
    let codec = PayloadCodec.allCases[Int(first & 0x7f) % PayloadCodec.allCases.count]
    let length = input.count - 1
    let payload = UnsafeRawBufferPointer(rebasing: input[1...]).bytes
    if let summary = codec.summary(of: payload, marker: first & 0x80 != 0) {
        precondition(length > 0, "an empty payload says nothing")
        precondition(summary.pictureIDOffset < length, "the picture id lies inside")
        precondition(summary.tl0Offset < length, "TL0PICIDX lies inside")
        precondition(summary.primaryOffset <= length, "the primary block lies inside")
        precondition((0..<8).contains(summary.spatialLayer) && (0..<8).contains(summary.temporalLayer), "layers")
        precondition(!summary.startsKeyframe || !codec.isVideo || summary.startsFrame || codec == .h264, "start")
    }
    switch codec {
    case .h264: readUnits(payload)
    case .av1:
        guard var elements = AV1.Elements(payload) else { return }
        while let element = elements.next(in: payload) {
            precondition(element.offset + element.length <= length, "elements lie inside")
        }
    case .red:
        guard var blocks = RED.Blocks(payload) else { return }
        var total = 0
        while let block = blocks.next(in: payload) {
            precondition(block.offset + block.length <= length, "blocks lie inside")
            total += block.length + (block.isPrimary ? 1 : 4)
        }
        precondition(total == length, "headers and blocks are the payload")
    case .vp8, .vp9, .opus, .otherAudio: break
    }
}

private func readUnits(_ payload: RawSpan) {
    _ = SequenceParameterSet(payload, offset: 0, length: payload.byteCount)
    guard var units = H264.Units(payload) else { return }
    while let unit = units.next(in: payload) {
        precondition(unit.offset + unit.length <= payload.byteCount, "units lie inside")
        _ = SequenceParameterSet(payload, unit)
    }
}
