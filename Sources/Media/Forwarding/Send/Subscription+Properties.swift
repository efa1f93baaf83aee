import MediaControl
public import Primitives
import RTP

// The properties of a subscription that others read; nothing here changes it. `mutating`: it is read in place, see `Subscription`.

extension Subscription {
    /// Maximum bytes that a packet needs in a slot, without protection.
    public static let maximumLength = PacketHistory.maximumPacketLength + RTPLayout.overhead

    /// Bytes of memory besides the struct itself.
    public var memoryBytes: Int { output.memoryBytes + section.memoryBytes }

    // MARK: - What was negotiated

    public var ssrc: UInt32 { section.wire.ssrc }

    /// nil if RTX was not negotiated.
    public var rtxSSRC: UInt32? { section.wire.rtxSSRC }

    /// The transport-wide number that the packet `sequence` keeps when it is sent again on its own stream; nil if it is sent as RTX (RFC 4588), or has none.
    public mutating func keptNumber(of sequence: UInt32, in track: PublishedTrack) -> UInt16? {
        guard usesTransportSequence, let packet = output.packet(sequence), !section.isRepeatedAsRTX(packet, of: track)
        else { return nil }
        return packet.transportSequence
    }

    /// Whether the section negotiated transport-wide feedback.
    public var promisesTransportFeedback: Bool { section.wire.hasTransportFeedback }

    /// Whether packets carry a transport-wide sequence number.
    public var usesTransportSequence: Bool { mutating get { section.wire.extensions[.transportSequence] != 0 } }

    /// Whether the subscriber negotiated the video orientation extension.
    public var hasOrientation: Bool { section.wire.extensions[.videoOrientation] != 0 }

    // MARK: - What is forwarded

    /// The layer being forwarded; nil while none is.
    public var layer: Int? { planner.selector.active.map { Int($0) } }

    /// The highest spatial layer of its stream that is forwarded.
    public var spatialCap: Int { Int(planner.selector.caps.spatial) }

    /// The layer to request a keyframe from.
    public var wantedLayer: Int { Int(planner.selector.target ?? 0) }

    /// Whether it waits for `setBound`.
    public var isAwaitingBound: Bool { planner.selector.isAwaiting }

    /// Maximum age of a keyframe in the history with which a new subscriber starts.
    public var replayAge: TimeSpan { planner.selector.replayLimit }

    /// When `plan` must be called again even without new packets.
    public var heldUntil: MonotonicTime { mutating get { output.heldUntil } }

    /// The subscriber's preference, as limits for the allocation.
    public func limits(of track: PublishedTrack) -> ViewerLimits {
        switch planner.selector.preference {
        case .best: ViewerLimits()
        case .height(let height): ViewerLimits(height: height)
        case .spatial(let rank): ViewerLimits(spatial: rank)
        case .rid(let rid): ViewerLimits(spatial: track.rank(of: rid))
        }
    }

    // MARK: - Probes

    /// Whether padding can be sent on it.
    public var canProbe: Bool {
        kind == .video && isBound
            && (padsBeside || section.fillerFormat(preferring: output.numbering.tail.format) != nil)
    }

    /// Whether padding has a stream of its own: RTX has its own sequence numbers to use.
    public var padsBeside: Bool { section.paddingPayloadType(preferring: output.numbering.tail.format) != nil }

    // MARK: - Sender reports

    /// RTCP canonical name.
    public var cname: [UInt8] { reports.cname }

    /// Whether a sender report is due at `now`.
    public func isReportDue(at now: MonotonicTime) -> Bool { reports.isDue(at: now) }

    /// The publisher's last sender report with its timestamp as the receiver sees it; nil before the first report and before the first packet.
    func clockAnchor(of track: PublishedTrack) -> (timestamp: UInt32, ntp: UInt64, arrival: MonotonicTime)? {
        guard isBound, let layer, output.numbering.hasSentOfBinding, let clock = track.layer(layer).pointee.clock,
            let delta = output.numbering.timestampDelta
        else { return nil }
        return (UInt32(truncatingIfNeeded: clock.timestamp) &+ delta, clock.ntp, clock.arrival)
    }

    /// A report for `now`: a point on the publisher's own mapping of wall clock to timestamps, shifted to the server's clock by
    /// `captureOffset`, so that audio and video of one publisher stay in sync (lip sync).
    ///
    /// nil before the publisher's first report and before the first packet.
    public func senderReport(of track: PublishedTrack, at now: MonotonicTime) -> SenderReportValues? {
        guard let captureOffset, let anchor = clockAnchor(of: track) else { return nil }
        let rate = Int64(max(1, section[output.numbering.tail.format].clockRate))
        let elapsed = now - anchor.arrival
        let ticks = elapsed.nanoseconds / 1_000 &* rate / 1_000_000
        let ntp = Int64(bitPattern: anchor.ntp) &+ captureOffset &+ NTPTime.fixedPoint(elapsed)
        let totals = totals
        return SenderReportValues(
            ntp: UInt64(bitPattern: ntp), timestamp: anchor.timestamp &+ UInt32(truncatingIfNeeded: ticks),
            packets: UInt32(truncatingIfNeeded: totals.packets), octets: UInt32(truncatingIfNeeded: totals.payloadBytes)
        )
    }
}
