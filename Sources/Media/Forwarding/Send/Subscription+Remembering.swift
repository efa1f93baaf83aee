import PayloadFormats
import Primitives

// What is remembered of a layer that is left or stopped, so that the next one goes on behind it.

extension Subscription {
    /// Remembers the frame numbers of the last forwarded packet, before its layer is left. Once a switch, not once a packet.
    mutating func rememberNumbers(of layer: UnsafeMutablePointer<ReceiveLayer>) {
        guard selector.active >= 0, ranges.count > 0 else { return }
        // The current range may have begun behind the last packet, with other deltas.
        let source = tail.sourceSequence
        let range = (ranges.find(layer: UInt8(layer.pointee.index), source: source) ?? ranges.current).pointee
        tail.clock = layer.pointee.clock
        guard let record = layer.pointee.history.record(source) else { return }
        remember(record, of: layer, in: range)
        skipMissing(behind: source, of: layer)
    }

    private mutating func remember(
        _ record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>, in range: NumberRange
    ) {
        let packet = layer.pointee.history.packet(record)
        let payload = UnsafeRawBufferPointer(rebasing: packet[Int(record.pointee.payloadOffset)...])
        let numbers = FrameNumbers(codec: tail.codec, payload: payload)
        if numbers.pictureOffset >= 0 { tail.picture = (numbers.picture &+ range.pictureDelta) & numbers.pictureMask }
        if numbers.temporalZeroOffset >= 0 { tail.temporalZero = numbers.temporalZero &+ range.temporalZeroDelta }
        if numbers.keyIndexOffset >= 0 { tail.keyIndex = (numbers.keyIndex &+ range.keyIndexDelta) & 0x1f }
        if let number = FrameNumbers.descriptorNumber(record, in: packet) { tail.frame = number &+ range.frameDelta }
    }

    /// Packets behind the last forwarded one are all left out or missing. Those that are missing may be repaired: their pictures keep their
    /// numbers, and nobody else gets them.
    private mutating func skipMissing(behind source: Int64, of layer: UnsafeMutablePointer<ReceiveLayer>) {
        let range = ranges.current.pointee
        let end = range.first - 1
        guard Int(range.layer) == layer.pointee.index, range.last < range.first, end > source,
            end - source < SequenceTracker.window
        else { return }
        // A picture that was left out behind a missing packet has the numbers that come after it.
        var missing: UInt16 = 0
        var sequence = end
        while sequence > source {
            if isLeftFree(sequence, of: layer) {
                missing += 1
            } else if let record = layer.pointee.history.record(sequence) {
                if missing > 0 || hasLeftFree(from: source, to: sequence, of: layer) {
                    remember(record, of: layer, in: range)
                }
                break
            }
            sequence -= 1
        }
        guard missing > 0 else { return }
        // Nothing tells whose they are: each may have been a picture.
        tail.picture = tail.picture.map { $0 &+ missing }
        tail.temporalZero = tail.temporalZero.map { $0 &+ UInt8(truncatingIfNeeded: missing) }
        tail.frame = tail.frame.map { $0 &+ missing }
    }

    private func hasLeftFree(
        from source: Int64, to end: Int64, of layer: UnsafeMutablePointer<ReceiveLayer>
    ) -> Bool {
        ((source + 1)..<end).contains { isLeftFree($0, of: layer) }
    }

    /// Whether a number was left for a packet that was missing, be it here by now or not.
    private func isLeftFree(_ sequence: Int64, of layer: UnsafeMutablePointer<ReceiveLayer>) -> Bool {
        ranges.find(layer: UInt8(layer.pointee.index), source: sequence) != nil
    }
}
