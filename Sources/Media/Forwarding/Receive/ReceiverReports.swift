internal import MediaControl
internal import Primitives
internal import RTP

/// The reports that a publisher gets: receiver reports (RFC 3550 section 6.4.2), and the extended reports that measure the round trip where this side sends
/// nothing (RFC 3611 sections 4.4, 4.5).
struct ReceiverReports: Sendable {
    /// Interval of receiver reports: without any, senders' video collapses (measured).
    private static let interval = TimeSpan.seconds(1)
    /// The first report is early: senders write mid and rid into their packets until it arrives.
    private static let first = TimeSpan.milliseconds(250)
    private static let cname = Array("martlet".utf8)
    /// Room for what follows the blocks: a source description of 20 bytes, a reference time of 20 and its answer of 24.
    private static let extendedLength = 64

    /// When the next one is due; `.distantFuture` while there is nothing to report.
    private(set) var nextDue = MonotonicTime.distantFuture
    /// The worst fraction lost of the last report, for the rate adviser.
    private(set) var worstLoss = 0.0
    /// The track slot at which to continue a report that did not fit one datagram.
    private var resumeSlot = 0
    /// The reports being written have a block, in this datagram or in one before it.
    private var haveBlocks = false
    /// The last reference time of the peer as a receiver (RFC 3611 section 4.4), to answer with the next report.
    private var reference: (ssrc: UInt32, middle: UInt32, arrival: MonotonicTime)?

    /// Nothing has arrived since the last report.
    var areResting: Bool { nextDue == .distantFuture }

    /// There is something to report from now on.
    mutating func start(at now: MonotonicTime) { nextDue = now + Self.first }

    /// The peer requests, as a receiver, an answer to its reference time.
    mutating func received(_ reference: ReceiverReferenceTime, at now: MonotonicTime) {
        self.reference = (reference.senderSSRC, NTPTime.middle(reference.ntpTimestamp), now)
    }

    /// Writes due reports from `sender` with a block for each SSRC received since the last; false when they do not fit.
    mutating func write(
        _ writer: inout RTCPWriter, about tracks: [PublishedTrack?], from sender: UInt32, capacity: Int,
        at now: MonotonicTime
    ) -> Bool {
        guard now >= nextDue else { return true }
        if resumeSlot == 0 { (worstLoss, haveBlocks) = (0, false) }
        var blocks = 0
        var asksReference = false
        while resumeSlot < tracks.count {
            guard let track = tracks[resumeSlot] else {
                resumeSlot += 1
                continue
            }
            asksReference = asksReference || track.description.feedback.contains(.receiverReferenceTime)
            guard writer.length + 16 + track.layerCount * ReportBlock.length + Self.extendedLength <= capacity else {
                // Each compound names its source (RFC 3550 section 6.1).
                if blocks > 0 { writer.appendSourceDescription(ssrc: sender, cname: Self.cname) }
                return false
            }
            for index in 0..<track.layerCount {
                let layer = track.layer(index)
                guard layer.pointee.reception.hasNews, let ssrc = layer.pointee.sources.ssrc else { continue }
                if blocks % 31 == 0, !writer.beginReceiverReport(ssrc: sender) { return false }
                let block = layer.pointee.makeReportBlock(ssrc: ssrc, at: now)
                worstLoss = max(worstLoss, Double(block.fractionLost) / 256)
                guard writer.addReportBlock(block) else { return false }
                blocks += 1
                haveBlocks = true
            }
            resumeSlot += 1
        }
        resumeSlot = 0
        writeExtended(&writer, from: sender, hasBlocks: blocks > 0, asksReference: asksReference, at: now)
        // Without received packets there is nothing to report until some arrive.
        nextDue = haveBlocks || reference != nil ? now + Self.interval : .distantFuture
        return true
    }

    private mutating func writeExtended(
        _ writer: inout RTCPWriter, from sender: UInt32, hasBlocks: Bool, asksReference: Bool, at now: MonotonicTime
    ) {
        if hasBlocks {
            writer.appendSourceDescription(ssrc: sender, cname: Self.cname)
            if asksReference {
                writer.appendReceiverReferenceTime(ssrc: sender, ntpTimestamp: NTPTime.at(now))
            }
        }
        if let reference {
            self.reference = nil
            // An extended report is not enough: a compound begins with a sender or receiver report.
            if !hasBlocks { writer.beginReceiverReport(ssrc: sender) }
            writer.appendDelaySinceLastReceiverReport(
                ssrc: sender,
                [
                    .init(
                        ssrc: reference.ssrc, lastReceiverReport: reference.middle,
                        delay: NTPTime.shortInterval(now - reference.arrival))
                ])
        }
    }
}
