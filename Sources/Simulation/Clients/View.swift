public import MediaControl
import PayloadFormats
public import Primitives
import RTP

/// One track as a simulated client receives it: what a browser keeps for a receiver, and the checks.
public final class View {
    /// Its number.
    public var id: SubscriptionID { description.id }
    /// As described to the server.
    public internal(set) var description: SubscriptionDescription
    /// The invariants of the stream.
    public var checker: StreamChecker
    /// The frames that a decoder could have shown.
    public internal(set) var frames: FrameLog
    /// When the last packet arrived, new or not.
    public private(set) var lastArrival: MonotonicTime?
    /// The longest time between two packets so far, repairs included.
    public private(set) var longestGap = TimeSpan.zero
    /// Numbers that arrived, at once or as a repair.
    public private(set) var packets = 0
    /// Packets that arrived more than once.
    public private(set) var duplicates = 0
    /// Numbers that arrived as a repair.
    public private(set) var repaired = 0
    /// A packet of the retransmission stream has carried the mid.
    var knowsRTX = false
    /// Bytes of payload that arrived, without duplicates.
    public private(set) var payloadBytes = 0
    /// Numbers between the first and the last that the server sent and that never arrived.
    public var missing: Int { checker.packets - packets }
    /// Numbers requested again, and keyframes requested.
    public internal(set) var nacks = 0
    public internal(set) var keyframeRequests = 0
    /// The delay of each new packet from its sending, if `keepsDelays`.
    public private(set) var delays: [TimeSpan] = []
    /// Keeps ``delays``.
    public var keepsDelays = false
    /// Called for every new packet, in order of arrival.
    public var onPacket: ((_ trace: MediaTrace?, _ marker: Bool, _ now: MonotonicTime) -> Void)?
    /// Called for every retransmission, new or not, with the number that it repairs.
    public var onRepair: ((_ number: Int64, _ now: MonotonicTime) -> Void)?

    /// Violations in what was sent, and in what a decoder could do with what arrived.
    var faults: [String] { checker.faults + frames.references.faults }
    /// For what the server sent, and for what arrived.
    var sentDescriptors = DependencyDescriptorReader()
    /// The active decode targets that the server announced, one bit each; 0 before it has announced any.
    public var activeDecodeTargets: UInt32 { sentDescriptors.activeDecodeTargets }
    private var descriptors = DependencyDescriptorReader()
    var repairs = RepairList()
    var report = ReceptionState()
    /// Since when it has waited for a keyframe, because something could not be repaired.
    var brokenSince: MonotonicTime?
    private var unwrapper = SequenceUnwrapper()
    /// Numbers that arrived recently, each at its place.
    private var seen = [Int64](repeating: -1, count: 1_024)
    /// By payload type: what it carries, and whether it is a repair.
    private let codecs: [UInt8: (codec: Codec, repairs: Bool)]

    /// `spatialLayers`: of the track, inside its stream; `now`: when it is subscribed to.
    init(_ description: SubscriptionDescription, spatialLayers: Int, at now: MonotonicTime) {
        self.description = description
        frames = FrameLog(at: now)
        checker = StreamChecker(kind: description.kind)
        frames.references.spatialLayers = spatialLayers
        checker.allowedTracks = Set(description.track.map { [$0.rawValue] } ?? [])
        var codecs: [UInt8: (codec: Codec, repairs: Bool)] = [:]
        for format in description.formats {
            codecs[format.payloadType] = (format.codec, false)
            if let type = format.rtxPayloadType { codecs[type] = (format.codec, true) }
        }
        self.codecs = codecs
    }

    /// From now on frames of higher temporal layers may be omitted.
    public func allowThinning() { checker.allowsThinning = true }

    /// Forgets the longest gap, to measure from now on.
    public func resetGap(at now: MonotonicTime) {
        longestGap = .zero
        lastArrival = now
    }

    /// The facts of a packet of its SSRCs; nil if its payload type was not negotiated or it is empty.
    func facts(
        _ packet: RawSpan, _ header: RTPHeader, descriptors: inout DependencyDescriptorReader
    ) -> PacketFacts? {
        guard let (codec, repairs) = codecs[header.payloadType] else { return nil }
        guard repairs == (header.ssrc == description.rtxSSRC) else { return nil }
        var descriptor: DependencyDescriptor?
        let id = SessionTerms.acceptedExtensions[.dependencyDescriptor]
        if let element = RTPHeaderExtensions.find(id, header, in: packet) {
            descriptor = descriptors.read(packet.extracting(element.offset..<(element.offset + element.length)))
        }
        return PacketFacts(packet, header: header, codec: codec, descriptor: descriptor, repairs: repairs)
    }

    /// Processes a received packet of its SSRCs.
    func receive(_ packet: RawSpan, header: RTPHeader, at now: MonotonicTime) {
        guard let facts = facts(packet, header, descriptors: &descriptors) else { return }
        let isRepair = header.ssrc != description.ssrc
        let number = unwrapper.unwrap(facts.sequenceNumber)
        if let lastArrival { longestGap = max(longestGap, now - lastArrival) }
        lastArrival = now
        if isRepair {
            onRepair?(number, now)
        } else {
            report.received(header, clockRate: description.kind == .video ? 90 : 48, at: now)
        }
        let place = Int(number) & (seen.count - 1)
        guard seen[place] < number else {
            duplicates += 1
            return
        }
        seen[place] = number
        packets += 1
        if isRepair { repaired += 1 }
        payloadBytes += facts.payloadLength
        if keepsDelays, let trace = facts.trace { delays.append(now - trace.time) }
        onPacket?(facts.trace, facts.marker, now)
        if description.kind == .video { receiveFrame(facts, number: number, at: now) }
    }

    private func receiveFrame(_ facts: PacketFacts, number: Int64, at now: MonotonicTime) {
        frames.add(facts, number: number, at: now)
        if facts.startsKeyframe { brokenSince = nil }
        // Too much is missing, or the beginning itself: only a keyframe helps.
        let isRepairable = repairs.received(number, at: now)
        if let next = frames.next { repairs.clear(before: next) }
        if !isRepairable || !frames.hasBegun { brokenSince = brokenSince ?? .zero }
    }
}

/// The state from which receiver reports are made (RFC 3550 section 6.4.1 and appendix A).
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
