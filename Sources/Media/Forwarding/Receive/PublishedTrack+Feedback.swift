internal import MediaControl
internal import Primitives
internal import RTP

// What one track asks of its publisher: lost packets and keyframes.

extension PublishedTrack {
    /// NACK (RFC 4585 section 6.2.1) for missing packets, from `sender`; false when they do not fit.
    func writeRepairRequests(
        _ writer: inout RTCPWriter, from sender: UInt32, roundTrip: TimeSpan, capacity: Int, at now: MonotonicTime
    ) -> Bool {
        for index in 0..<layerCount {
            let layer = self.layer(index)
            guard let ssrc = layer.pointee.sources.ssrc, now >= layer.pointee.nextFeedback else { continue }
            if now >= layer.pointee.reception.nextRequest {
                guard capacity - writer.length >= Self.nackRoom else { return false }
                writeMissing(&writer, from: sender, ssrc, layer, roundTrip: roundTrip, at: now)
            }
            if layer.pointee.consumeLoss() { requestKeyframe(layer: index) }
        }
        return true
    }

    /// Header and SSRCs, and 32 entries. Numbers that do not fit are requested again one round trip later.
    private static var nackRoom: Int { 12 + 4 * 32 }

    private func writeMissing(
        _ writer: inout RTCPWriter, from sender: UInt32, _ ssrc: UInt32, _ layer: UnsafeMutablePointer<ReceiveLayer>,
        roundTrip: TimeSpan, at now: MonotonicTime
    ) {
        withUnsafeTemporaryAllocation(of: UInt16.self, capacity: NackGenerator.capacity) { numbers in
            let count = layer.pointee.consumeMissing(
                at: now, roundTrip: roundTrip, repair: lossRepair, into: numbers)
            guard count > 0, writer.beginNACK(senderSSRC: sender, mediaSSRC: ssrc) else { return }
            for index in 0..<count where !writer.addMissing(numbers[index]) { return }
        }
    }

    /// PLI (RFC 4585 section 6.3.1), or FIR (RFC 5104 section 4.3.1) for senders that support nothing else, from `sender`; false when they do not fit.
    func writeKeyframeRequests(_ writer: inout RTCPWriter, from sender: UInt32, at now: MonotonicTime) -> Bool {
        guard asksForKeyframes else { return true }
        for index in 0..<layerCount {
            let layer = self.layer(index)
            guard let ssrc = layer.pointee.sources.ssrc, now >= layer.pointee.keyframes.nextDue else { continue }
            if layer.pointee.keyframes.isInVain, !isActive(layer: index, at: now) {
                layer.pointee.keyframes.giveUp()
                continue
            }
            var trial = writer
            let fits: Bool
            if description.feedback.contains(.pli) {
                fits = trial.appendPictureLoss(senderSSRC: sender, mediaSSRC: ssrc)
            } else {
                fits = trial.appendFullIntraRequest(
                    senderSSRC: sender, mediaSSRC: ssrc, sequenceNumber: layer.pointee.keyframes.command)
            }
            guard fits else { return false }
            guard layer.pointee.consumeKeyframeRequest(at: now) else { continue }
            writer = trial
        }
        return true
    }
}
