internal import MediaControl
public import Primitives
internal import RTP

extension Uplink {
    /// Writes receiver reports (RFC 3550 section 6.4.2) with a block for each SSRC received since the last, and the extended reports
    /// that measure the round trip where this side sends nothing (RFC 3611 sections 4.4, 4.5).
    func writeReports(_ writer: inout RTCPWriter, capacity: Int, at now: MonotonicTime) -> Bool {
        guard now >= state.pointee.reports.nextReport else { return true }
        if state.pointee.reports.resumeSlot == 0 { state.pointee.reports.worstLoss = 0 }
        var blocks = 0
        var asksReference = false
        while state.pointee.reports.resumeSlot < tracks.count {
            guard let track = tracks[state.pointee.reports.resumeSlot] else {
                state.pointee.reports.resumeSlot += 1
                continue
            }
            asksReference = asksReference || track.description.feedback.contains(.receiverReferenceTime)
            guard writer.length + 8 + track.layerCount * ReportBlock.length + 60 <= capacity else { return false }
            for index in 0..<track.layerCount {
                let layer = track.layer(index)
                guard layer.pointee.reception.hasNews, let ssrc = layer.pointee.sources.ssrc else { continue }
                if blocks % 31 == 0, !writer.beginReceiverReport(ssrc: feedbackSSRC) { return false }
                let block = layer.pointee.makeReportBlock(ssrc: ssrc, at: now)
                state.pointee.reports.worstLoss = max(state.pointee.reports.worstLoss, Double(block.fractionLost) / 256)
                guard writer.addReportBlock(block) else { return false }
                blocks += 1
            }
            state.pointee.reports.resumeSlot += 1
        }
        state.pointee.reports.resumeSlot = 0
        writeExtendedReports(&writer, hasBlocks: blocks > 0, asksReference: asksReference, at: now)
        // Without received packets there is nothing to report until some arrive.
        state.pointee.reports.nextReport =
            blocks > 0 || state.pointee.reports.reference != nil ? now + ReportState.interval : .distantFuture
        return true
    }

    private static let cname = Array("martlet".utf8)

    private func writeExtendedReports(
        _ writer: inout RTCPWriter, hasBlocks: Bool, asksReference: Bool, at now: MonotonicTime
    ) {
        if hasBlocks {
            writer.appendSourceDescription(ssrc: feedbackSSRC, cname: Self.cname)
            if asksReference {
                writer.appendReceiverReferenceTime(ssrc: feedbackSSRC, ntpTimestamp: NTPTime.at(now))
            }
        }
        if let reference = state.pointee.reports.reference {
            state.pointee.reports.reference = nil
            // An extended report is not enough: a compound begins with a sender or receiver report.
            if !hasBlocks { writer.beginReceiverReport(ssrc: feedbackSSRC) }
            writer.appendDelaySinceLastReceiverReport(
                ssrc: feedbackSSRC,
                [
                    .init(
                        ssrc: reference.ssrc, lastReceiverReport: reference.middle,
                        delay: NTPTime.shortInterval(now - reference.arrival))
                ])
        }
    }

    /// Processes one decrypted compound: sender reports, BYEs and extended reports; the downlink uses the rest.
    public func receiveRTCP(_ packet: RawSpan, at now: MonotonicTime) {
        guard var compound = RTCPCompound(packet) else { return }
        while let part = compound.next(in: packet) {
            switch part {
            case .senderReport(let report): receive(report, at: now)
            case .goodbye(let goodbye):
                for index in 0..<goodbye.count { receiveGoodbye(goodbye.ssrc(at: index, in: packet), at: now) }
            case .receiverReferenceTime(let reference):
                state.pointee.reports.reference = (
                    reference.senderSSRC, UInt32(truncatingIfNeeded: reference.ntpTimestamp >> 16), now
                )
                if state.pointee.reports.nextReport == .distantFuture { startReporting(at: now) }
            case .delaySinceLastReceiverReport(let answers):
                for index in 0..<answers.count {
                    let answer = answers.item(at: index, in: packet)
                    guard answer.ssrc == feedbackSSRC, answer.lastReceiverReport != 0 else { continue }
                    let sent = NTPTime.middle(NTPTime.at(now))
                    let elapsed = Int32(bitPattern: sent &- answer.lastReceiverReport &- answer.delay)
                    state.pointee.roundTrip.measured(NTPTime.interval(elapsed))
                }
            default: break
            }
        }
    }

    private func receive(_ report: SenderReport, at now: MonotonicTime) {
        guard let binding = state.pointee.table[report.ssrc], !binding.isRTX, let track = tracks[Int(binding.track)]
        else { return }
        track.layer(Int(binding.layer)).pointee.received(report, at: now)
    }

    /// The source stops (RFC 3550 section 6.6): silent at once instead of after the limit. The SSRC may return.
    private func receiveGoodbye(_ ssrc: UInt32, at now: MonotonicTime) {
        guard let binding = state.pointee.table[ssrc], !binding.isRTX, let track = tracks[Int(binding.track)] else {
            return
        }
        track.layer(Int(binding.layer)).pointee.end()
        schedule.wake(at: track.silenceDeadline)
    }
}
