internal import MediaControl
public import Primitives
internal import RTP

/// When reports are sent, and which reference times of other receivers await an answer.
struct ReportState: Sendable {
    /// Interval of receiver reports: without any, senders' video collapses (measured).
    static let interval = TimeInterval.seconds(1)
    /// The first report is early: senders write mid and rid into their packets until it arrives.
    static let first = TimeInterval.milliseconds(250)

    var nextReport = MonotonicTime.distantFuture
    /// The track slot at which to continue a report that did not fit one datagram.
    var resumeSlot = 0
    /// The last reference time of the peer as a receiver (RFC 3611 section 4.4), to answer with the next report.
    var reference: (ssrc: UInt32, middle: UInt32, arrival: MonotonicTime)?
    /// The worst fraction lost of the last report, for the rate adviser.
    var worstLoss = 0.0
}

extension Uplink {
    /// Writes due RTCP as one compound to `feedback`; returns its length, 0 when nothing is due. Call until it is 0.
    ///
    /// Feedback is reduced-size RTCP (RFC 5506), except for a full compound with reports once per second.
    public func advance(to now: MonotonicTime, feedback: UnsafeMutableRawBufferPointer) -> Int {
        guard now >= schedule.deadline else { return 0 }
        updateActivity(at: now)
        var writer = RTCPWriter(feedback)
        let isComplete =
            writeReports(&writer, capacity: feedback.count, at: now)
            && writeRepairRequests(&writer, capacity: feedback.count, at: now)
            && writeKeyframeRequests(&writer, at: now)
            && state.pointee.recorder.write(&writer, senderSSRC: feedbackSSRC, at: now)
            && writeMaximumBitrate(&writer, at: now)
        schedule.set(isComplete ? deadlineByState() : now)
        // A datagram too small for even one packet must not make a caller loop for ever.
        if !isComplete, writer.length == 0 { schedule.set(now + .milliseconds(10)) }
        return writer.length
    }

    func startReporting(at now: MonotonicTime) {
        state.pointee.reports.nextReport = now + ReportState.first
        state.pointee.rateAdviser.wake(at: state.pointee.reports.nextReport)
        schedule.wake(at: state.pointee.reports.nextReport)
    }

    private func deadlineByState() -> MonotonicTime {
        var deadline = min(
            min(state.pointee.reports.nextReport, state.pointee.recorder.nextDue), state.pointee.rateAdviser.nextDue)
        for case let track? in tracks {
            deadline = min(deadline, track.silenceDeadline)
            for index in 0..<track.layerCount { deadline = min(deadline, track.layer(index).pointee.nextFeedback) }
        }
        return deadline
    }

    private func updateActivity(at now: MonotonicTime) {
        for case let track? in tracks where now >= track.silenceDeadline {
            track.state.pointee.isSilent = true
            for index in 0..<track.layerCount { track.layer(index).pointee.keyframes.streamPaused() }
            state.pointee.events.append(.trackSilent(track.description.id))
        }
    }

    // MARK: Repair

    /// NACK (RFC 4585 section 6.2.1) for missing packets.
    private func writeRepairRequests(_ writer: inout RTCPWriter, capacity: Int, at now: MonotonicTime) -> Bool {
        for case let track? in tracks {
            for index in 0..<track.layerCount {
                let layer = track.layer(index)
                guard let ssrc = layer.pointee.sources.ssrc, now >= layer.pointee.nextFeedback else { continue }
                if now >= layer.pointee.reception.nextRequest {
                    guard capacity - writer.length >= Self.nackRoom else { return false }
                    writeMissing(&writer, ssrc, layer, at: now)
                }
                if layer.pointee.consumeLoss() { track.requestKeyframe(layer: index) }
            }
        }
        return true
    }

    /// Used before a round trip is measured: not so short that every packet is requested twice, nor so long that repair is late.
    private static var assumedRoundTrip: TimeInterval { .milliseconds(100) }

    /// Header and SSRCs, and 32 entries. Numbers that do not fit are requested again one round trip later.
    private static var nackRoom: Int { 12 + 4 * 32 }

    private func writeMissing(
        _ writer: inout RTCPWriter, _ ssrc: UInt32, _ layer: UnsafeMutablePointer<ReceiveLayer>, at now: MonotonicTime
    ) {
        withUnsafeTemporaryAllocation(of: UInt16.self, capacity: NackGenerator.capacity) { numbers in
            let roundTrip = state.pointee.roundTrip.smoothed ?? Self.assumedRoundTrip
            let count = layer.pointee.consumeMissing(at: now, roundTrip: roundTrip, into: numbers)
            guard count > 0, writer.beginNACK(senderSSRC: feedbackSSRC, mediaSSRC: ssrc) else { return }
            for index in 0..<count where !writer.addMissing(numbers[index]) { return }
        }
    }

    /// PLI (RFC 4585 section 6.3.1), or FIR (RFC 5104 section 4.3.1) for senders that support nothing else.
    private func writeKeyframeRequests(_ writer: inout RTCPWriter, at now: MonotonicTime) -> Bool {
        for case let track? in tracks where track.asksForKeyframes {
            for index in 0..<track.layerCount {
                let layer = track.layer(index)
                guard let ssrc = layer.pointee.sources.ssrc, now >= layer.pointee.keyframes.nextDue else { continue }
                if layer.pointee.keyframes.isInVain, !track.isActive(layer: index, at: now) {
                    layer.pointee.keyframes.giveUp()
                    continue
                }
                var trial = writer
                let fits: Bool
                if track.description.feedback.contains(.pli) {
                    fits = trial.appendPictureLoss(senderSSRC: feedbackSSRC, mediaSSRC: ssrc)
                } else {
                    fits = trial.appendFullIntraRequest(
                        senderSSRC: feedbackSSRC, mediaSSRC: ssrc, sequenceNumber: layer.pointee.keyframes.command)
                }
                guard fits else { return false }
                guard layer.pointee.consumeKeyframeRequest(at: now) else { continue }
                writer = trial
            }
        }
        return true
    }

    // MARK: Rate

    private func writeMaximumBitrate(_ writer: inout RTCPWriter, at now: MonotonicTime) -> Bool {
        guard now >= state.pointee.rateAdviser.nextDue else { return true }
        var ssrcs: [UInt32] = []
        var isSupported = false, hasTransportFeedback = false, isCapped = false
        var sum: Int64 = 0
        for case let track? in tracks where track.format != nil && !track.isSilent && !track.isMuted {
            let feedback = track.description.feedback
            hasTransportFeedback =
                hasTransportFeedback
                || (feedback.contains(.transportCC) && track.description.extensions[.transportSequence] != 0)
            guard track.description.kind == .video else {
                // Typical Opus bitrate without a cap.
                sum += track.description.maximumBitrate?.bitsPerSecond ?? 64_000
                continue
            }
            isSupported = isSupported || feedback.contains(.remb)
            isCapped = isCapped || track.description.maximumBitrate != nil
            // One video track without a maximum makes the sum meaningless: assume the maximum.
            sum += track.description.maximumBitrate?.bitsPerSecond ?? Int64(RateAdviser.most)
            for index in 0..<track.layerCount {
                if let ssrc = track.layer(index).pointee.sources.ssrc { ssrcs.append(ssrc) }
            }
        }
        guard isSupported, !ssrcs.isEmpty else {
            // A video or its maximum may follow.
            state.pointee.rateAdviser.rest(until: state.pointee.reports.nextReport)
            return true
        }
        let rate = state.pointee.rateAdviser.advise(
            fractionLost: state.pointee.reports.worstLoss, maximum: isCapped ? .bitsPerSecond(sum) : nil,
            hasTransportFeedback: hasTransportFeedback, at: now)
        guard let rate else { return true }
        return writer.appendMaximumBitrate(
            senderSSRC: feedbackSSRC, bitsPerSecond: UInt64(rate.bitsPerSecond), ssrcs: ssrcs)
    }
}
