public import MediaControl
public import Primitives
import RTP

/// One track as a simulated client receives it: what a browser keeps for a receiver, and the checks.
public final class View {
    /// Its number.
    public var id: SubscriptionID { description.id }
    /// As the server was told.
    public internal(set) var description: SubscriptionDescription
    /// What must always be true of the stream.
    public internal(set) var checker: StreamChecker
    /// What could be shown of it.
    public internal(set) var frames = FrameLog()
    /// When the last packet came, new or not.
    public private(set) var lastArrival: MonotonicTime?
    /// The longest time between two packets so far, repairs included.
    public private(set) var longestGap = TimeInterval.zero
    /// Bytes of payload that came, doubles not.
    public private(set) var payloadBytes = 0
    /// Packets that came as retransmissions.
    public private(set) var repaired = 0
    /// Numbers asked for, and keyframes asked for.
    public internal(set) var nacks = 0
    public internal(set) var keyframeRequests = 0
    /// Each new packet's time from its sending, where `keepsDelays`.
    public private(set) var delays: [TimeInterval] = []
    /// Keeps ``delays``.
    public var keepsDelays = false
    /// Hears every new packet, in order of arrival.
    public var onPacket: ((_ trace: MediaTrace?, _ marker: Bool, _ now: MonotonicTime) -> Void)?

    var repairs = RepairList()
    var report = ReceptionState()
    /// Waits for a keyframe since then, because something could not be repaired.
    var brokenSince: MonotonicTime?
    private let codecs: [UInt8: Codec]

    init(_ description: SubscriptionDescription) {
        self.description = description
        checker = StreamChecker(kind: description.kind)
        checker.allowedTracks = Set(description.track.map { [$0.rawValue] } ?? [])
        codecs = Dictionary(
            description.formats.map { ($0.payloadType, $0.codec) }, uniquingKeysWith: { first, _ in first })
    }

    /// Forgets the longest gap, to measure from now on.
    public func resetGap(at now: MonotonicTime) {
        longestGap = .zero
        lastArrival = now
    }

    /// Payload type of the repaired stream for a retransmission's.
    func originalType(ofRepair type: UInt8) -> UInt8? {
        description.formats.first { $0.rtxPayloadType == type }?.payloadType
    }

    /// Takes a packet of its SSRC; a sentence when its payload type is not agreed.
    func take(_ packet: RawSpan, header: RTPHeader, isRepair: Bool, at now: MonotonicTime) -> String? {
        guard let codec = codecs[header.payloadType] else { return "payload type \(header.payloadType) is not agreed" }
        let facts = PacketFacts(packet, header: header, codec: codec)
        let (number, isNew) = checker.take(facts)
        if let lastArrival { longestGap = max(longestGap, now - lastArrival) }
        lastArrival = now
        if !isRepair { report.received(header, clockRate: description.kind == .video ? 90 : 48, at: now) }
        guard isNew else { return nil }
        if isRepair { repaired += 1 }
        payloadBytes += header.payloadLength
        if facts.startsKeyframe { brokenSince = nil }
        if !repairs.received(number, at: now), description.kind == .video { brokenSince = brokenSince ?? .zero }
        frames.take(facts, number: number, at: now)
        if keepsDelays, let trace = facts.trace { delays.append(now - trace.time) }
        onPacket?(facts.trace, facts.marker, now)
        return nil
    }
}

/// What receiver reports are made of (RFC 3550 section 6.4.1 and appendix A).
struct ReceptionState: Sendable {
    private var unwrapper = SequenceUnwrapper()
    private var base: Int64?
    private var highest: Int64 = 0
    private var received: Int64 = 0
    private var expectedBefore: Int64 = 0
    private var receivedBefore: Int64 = 0
    private var jitter = 0.0
    private var transit: Int64?
    private var lastReport: (compact: UInt32, arrival: MonotonicTime)?

    var hasStarted: Bool { base != nil }

    mutating func received(_ header: RTPHeader, clockRate: Int64, at now: MonotonicTime) {
        let number = unwrapper.unwrap(header.sequenceNumber)
        base = base ?? number
        highest = max(highest, number)
        received += 1
        let here = now.nanoseconds * clockRate / 1_000_000 - Int64(header.timestamp)
        if let transit { jitter += (Double(abs(Int64(Int32(truncatingIfNeeded: here - transit)))) - jitter) / 16 }
        transit = here
    }

    mutating func received(_ report: SenderReport, at now: MonotonicTime) {
        lastReport = (report.compactTimestamp, now)
    }

    mutating func block(ssrc: UInt32, at now: MonotonicTime) -> ReportBlock? {
        guard let base else { return nil }
        let expected = highest - base + 1
        let expectedNow = expected - expectedBefore, receivedNow = received - receivedBefore
        expectedBefore = expected
        receivedBefore = received
        let fraction = expectedNow > 0 ? max(0, min(255, (expectedNow - receivedNow) * 256 / expectedNow)) : 0
        let delay = lastReport.map { UInt32((now - $0.arrival).nanoseconds * 65_536 / 1_000_000_000) } ?? 0
        return ReportBlock(
            ssrc: ssrc, fractionLost: UInt8(fraction), cumulativeLost: Int32(truncatingIfNeeded: expected - received),
            highestSequence: UInt32(truncatingIfNeeded: highest), jitter: UInt32(jitter),
            lastSenderReport: lastReport?.compact ?? 0, delaySinceLastSenderReport: delay)
    }
}
