internal import MediaControl
internal import Primitives
internal import RTP

/// The bitrate that REMB (draft-alvestrand-rmcat-remb-03) signals to a publisher.
///
/// Two uses:
/// - a publisher without transport-wide feedback has no other feedback. It gets a rate that grows by a tenth per second
///   from 1 Mbit/s, at most to 1.5 times what it really sends, holds while 2 to 10 % are lost, and falls with more
///   (the loss part of Google's congestion control, draft-ietf-rmcat-gcc-02 section 6);
/// - a track with a maximum gets that maximum, even next to transport-wide feedback: senders use the smaller value.
struct RateAdviser: Sendable {
    static let start: Double = 1_000_000
    /// Below this, video is useless and audio is at risk.
    static let least: Double = 100_000
    /// Limit when the room sets no maximum. Above what phones and browsers send for three layers at 1080p.
    static let most: Double = 8_000_000
    static let interval = TimeSpan.seconds(1)
    /// Signals that the maximum was removed.
    static let lifted = Bitrate.kilobitsPerSecond(100_000)
    /// `lifted` is signalled this many times in a row, and then once in this many intervals: nothing shows whether the sender received any of these messages.
    private static let liftingsInRow = 3, laterLiftings = 10

    private var advised = start
    private var bytes = 0
    /// Intervals since the signalled maximum was removed, 0 while there is one; nil: none was ever signalled.
    private var liftings: Int?
    private(set) var nextDue = MonotonicTime.distantFuture

    /// Counts `length` received bytes.
    @inline(__always) mutating func count(_ length: Int) { bytes &+= length }

    mutating func wake(at moment: MonotonicTime) { nextDue = min(nextDue, moment) }

    /// The rate to signal now, given the worst fraction lost since the last time, 0 to 1.
    private mutating func advise(
        fractionLost: Double, maximum: Bitrate?, hasTransportFeedback: Bool, at now: MonotonicTime
    ) -> Bitrate? {
        let received = Double(bytes) * 8 / Self.interval.seconds
        bytes = 0
        nextDue = now + Self.interval
        if hasTransportFeedback {
            if maximum != nil {
                liftings = 0
                return maximum
            }
            // A signalled maximum holds until the next value, however long that takes (libwebrtc's `SendSideBandwidthEstimation`).
            guard let count = liftings else { return nil }
            liftings = count + 1
            return count < Self.liftingsInRow || count.isMultiple(of: Self.laterLiftings) ? Self.lifted : nil
        }
        if fractionLost > 0.1 {
            advised *= 1 - 0.5 * fractionLost
        } else if fractionLost < 0.02 {
            // Growing far beyond the sent rate would reveal nothing about the path.
            let grown = advised * 1.1
            if grown <= max(received * 1.5, Self.start) { advised = grown }
        }
        advised = max(Self.least, min(advised, maximum.map { Double($0.bitsPerSecond) } ?? Self.most))
        return .bitsPerSecond(Int64(advised))
    }

    /// Writes the rate to signal for `tracks`, if it is due, from `sender`; false when it does not fit.
    mutating func write(
        _ writer: inout RTCPWriter, about tracks: [PublishedTrack?], from sender: UInt32,
        after reports: ReceiverReports,
        at now: MonotonicTime
    ) -> Bool {
        guard now >= nextDue else { return true }
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
            nextDue = reports.nextDue
            return true
        }
        let rate = advise(
            fractionLost: reports.worstLoss, maximum: isCapped ? .bitsPerSecond(sum) : nil,
            hasTransportFeedback: hasTransportFeedback, at: now)
        guard let rate else { return true }
        return writer.appendMaximumBitrate(
            senderSSRC: sender, bitsPerSecond: UInt64(rate.bitsPerSecond), ssrcs: ssrcs)
    }
}
