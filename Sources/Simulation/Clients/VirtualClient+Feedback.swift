import MediaControl
import Primitives
import RTP

// What a browser sends about what it receives: NACK and keyframe requests at once, transport-wide feedback several times per second,
// sender and receiver reports once per second.

extension VirtualClient {
    /// A keyframe that does not arrive is requested again after this.
    private static let keyframeInterval = TimeSpan.milliseconds(500)

    func sendFeedback() {
        if feedback.nextRepair <= world.now { sendRepairs() }
        if feedback.nextTransportFeedback <= world.now { sendTransportFeedback() }
        if feedback.nextReport <= world.now {
            feedback.nextReport = world.now + settings.reportInterval
            sendReports()
        }
    }

    /// A round trip, as the client would have measured it, and the jitter of timers.
    private var repairInterval: TimeSpan { uplink.model.delay + downlink.model.delay + .milliseconds(10) }

    private func sendRepairs() {
        feedback.nextRepair = .distantFuture
        var writer = makeWriter()
        for view in views where view.description.kind == .video {
            var gaveUp = false
            let numbers = view.repairs.dueRequests(at: world.now, interval: repairInterval, gaveUp: &gaveUp)
            if !numbers.isEmpty, view.description.feedback.contains(.nack) {
                writer.beginNACK(senderSSRC: feedback.ssrc, mediaSSRC: view.description.ssrc)
                for number in numbers { writer.addMissing(UInt16(truncatingIfNeeded: number)) }
                view.nacks += numbers.count
            }
            if gaveUp { view.brokenSince = view.brokenSince ?? .zero }
            askForKeyframe(view, &writer)
            if !view.repairs.isEmpty { feedback.nextRepair = min(feedback.nextRepair, view.repairs.nextDeadline) }
        }
        if writer.length > 0 { sendRTCP(writer.length) }
    }

    private func askForKeyframe(_ view: View, _ writer: inout RTCPWriter) {
        guard let since = view.brokenSince else { return }
        if since == .zero || world.now - since >= Self.keyframeInterval {
            view.brokenSince = world.now
            view.keyframeRequests += 1
            writer.appendPictureLoss(senderSSRC: feedback.ssrc, mediaSSRC: view.description.ssrc)
        }
        feedback.nextRepair = min(feedback.nextRepair, (view.brokenSince ?? world.now) + Self.keyframeInterval)
    }

    private func sendTransportFeedback() {
        feedback.nextTransportFeedback = .distantFuture
        var arrivals = feedback.arrivals.sorted { $0.sequence < $1.sequence }
        if !settings.reportsLatePackets { feedback.arrivals.removeAll(keepingCapacity: true) }
        if let next = feedback.nextNumber { arrivals.removeAll { $0.sequence < next } }
        var taken = 0
        while taken < arrivals.count {
            var writer = makeWriter()
            let rest = Array(arrivals[taken...])
            let count = writer.appendTransportFeedback(
                senderSSRC: feedback.ssrc, mediaSSRC: views.first?.description.ssrc ?? 0,
                feedbackCount: feedback.feedbackCount, from: feedback.nextNumber ?? rest[0].sequence,
                arrivals: rest.span)
            guard count > 0 else { break }
            taken += count
            feedback.nextNumber = arrivals[taken - 1].sequence + 1
            feedback.feedbackCount &+= 1
            sendRTCP(writer.length)
        }
    }

    func sendReceiverEstimate(_ bitsPerSecond: Double) {
        var writer = RTCPWriter(UnsafeMutableRawBufferPointer(rebasing: world.feedbackSlot[..<256]))
        let ssrcs = views.filter { $0.description.kind == .video }.prefix(8).map(\.description.ssrc)
        _ = writer.appendMaximumBitrate(
            senderSSRC: feedback.ssrc, bitsPerSecond: UInt64(bitsPerSecond), ssrcs: Array(ssrcs))
        guard let total = transport.protectRTCP(world.feedbackSlot, length: writer.length) else { return }
        world.carryUp(UnsafeRawBufferPointer(rebasing: world.feedbackSlot[..<total]), from: self)
    }

    private func sendReports() {
        var writer = makeWriter()
        for publication in publications where publication.isSending {
            for stream in publication.streams where stream.packets > 0 {
                writer.beginSenderReport(
                    ssrc: stream.ssrc, ntpTimestamp: Self.ntp(world.now), rtpTimestamp: mediaTime(publication, stream),
                    packetCount: stream.packets, octetCount: stream.octets)
                writer.appendSourceDescription(ssrc: stream.ssrc, cname: Array("client\(id.rawValue)".utf8))
            }
        }
        if writer.length == 0 { writer.beginReceiverReport(ssrc: feedback.ssrc) }
        var blocks = views.compactMap { $0.report.block(ssrc: $0.description.ssrc, at: world.now) }[...]
        while !blocks.isEmpty {
            writer.beginReceiverReport(ssrc: feedback.ssrc)
            while let block = blocks.first, writer.addReportBlock(block) { blocks = blocks.dropFirst() }
            guard !blocks.isEmpty else { break }
            sendRTCP(writer.length)
            writer = makeWriter()
        }
        if writer.length > 0 { sendRTCP(writer.length) }
    }

    private func mediaTime(_ publication: Publication, _ stream: OutgoingStream) -> UInt32 {
        stream.timestamp(publication.mediaTime(at: world.now))
    }

    private func makeWriter() -> RTCPWriter {
        RTCPWriter(UnsafeMutableRawBufferPointer(rebasing: world.slot[..<1_200]))
    }

    /// Virtual time as an NTP time of the client's own clock.
    private static func ntp(_ time: MonotonicTime) -> UInt64 {
        let seconds = UInt64(time.nanoseconds / 1_000_000_000) + 3_900_000_000
        let fraction = UInt64(time.nanoseconds % 1_000_000_000) << 32 / 1_000_000_000
        return seconds << 32 | fraction
    }
}
