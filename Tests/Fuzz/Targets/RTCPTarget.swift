import Primitives
import RTP

/// Any datagram as RTCP: every list of every packet is walked, and feedback that was read is written and read again.
func fuzzRTCP(_ input: UnsafeRawBufferPointer) {
    let datagram = input.bytes
    let count = input.count
    guard var compound = RTCPCompound(datagram) else { return }
    while let packet = compound.next(in: datagram) {
        switch packet {
        case .senderReport(let report): readBlocks(report.blocks, datagram)
        case .receiverReport(let report): readBlocks(report.blocks, datagram)
        case .sourceDescription(var description):
            while let item = description.next(in: datagram) {
                precondition(item.offset + item.length <= count, "items lie inside")
            }
        case .goodbye(let goodbye):
            for index in 0..<goodbye.count { _ = goodbye.ssrc(at: index, in: datagram) }
        case .nack(let nack):
            for index in 0..<nack.count {
                let entry = nack.entry(at: index, in: datagram)
                precondition(entry.reduce(0) { count, _ in count + 1 } == entry.packetCount, "as many as it says")
            }
        case .fullIntraRequest(let request):
            for index in 0..<request.count { _ = request.entry(at: index, in: datagram) }
        case .maximumBitrate(let estimate):
            for index in 0..<estimate.count { _ = estimate.ssrc(at: index, in: datagram) }
        case .delaySinceLastReceiverReport(let delays):
            for index in 0..<delays.count { _ = delays.item(at: index, in: datagram) }
        case .transportFeedback(let feedback): repeatFeedback(feedback, datagram)
        case .application(let unknown), .unknown(let unknown):
            precondition(unknown.offset + unknown.length <= count, "bodies lie inside")
        case .pictureLoss, .receiverReferenceTime: break
        }
    }
}

private func readBlocks(_ blocks: ReportBlocks, _ datagram: RawSpan) {
    for index in 0..<blocks.count { _ = blocks.block(at: index, in: datagram) }
}

private func repeatFeedback(_ feedback: TransportFeedback, _ datagram: RawSpan) {
    guard var reader = feedback.makeReader(in: datagram) else { return }
    var arrivals: [PacketArrival] = []
    var sequence: Int64 = 100_000
    while let status = reader.next(in: datagram) {
        if let ticks = status.arrival {
            // Clocks of this process never run below zero.
            let time = MonotonicTime(nanoseconds: (ticks + 1 << 40) * 250_000)
            arrivals.append(PacketArrival(sequence: sequence, time: time))
        }
        sequence += 1
    }
    precondition(sequence == 100_000 + Int64(feedback.packetCount), "as many as it says")
    let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: 1_200, alignment: 8)
    defer { slot.deallocate() }
    var writer = RTCPWriter(slot)
    let taken = writer.appendTransportFeedback(
        senderSSRC: 1, mediaSSRC: 2, feedbackCount: 3, from: 100_000, arrivals: arrivals.span)
    guard taken > 0 else { return }
    let written = UnsafeRawBufferPointer(rebasing: slot[..<writer.length]).bytes
    guard var compound = RTCPCompound(written), case .transportFeedback(let again)? = compound.next(in: written),
        var second = again.makeReader(in: written)
    else { preconditionFailure("what was written can be read") }
    var index = 0
    while let status = second.next(in: written) {
        guard status.arrival != nil else { continue }
        precondition(
            UInt16(truncatingIfNeeded: arrivals[index].sequence) == status.sequence, "the same packets arrived")
        index += 1
    }
    precondition(index == taken, "all that were taken are reported")
}
