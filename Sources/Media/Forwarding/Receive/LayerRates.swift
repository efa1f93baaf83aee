internal import PayloadFormats
internal import Primitives

/// Bytes and frames of each temporal layer of each spatial layer inside one stream.
struct LayerRates: Sendable {
    /// VP9 and AV1 have at most 3 spatial layers in WebRTC (L3T3); temporal layers are 2 bits in every payload descriptor.
    static let spatialLayers = 3
    static let temporalLayers = 4
    /// Allocation prefers a steady value to a quick one: the last 15 of 16 buckets.
    private static let eighths = 15

    private var bytes = InlineArray<12, RateMeter>(repeating: RateMeter())
    private var frames = InlineArray<12, RateMeter>(repeating: RateMeter())
    /// A bit for each combination seen; the sums below skip the others.
    private var seen: UInt16 = 0
    /// When the first packet arrived; nil before it.
    private(set) var began: MonotonicTime?
    /// Until this age the measured rate is mostly that of a keyframe …
    private static let youth = TimeSpan.seconds(1)
    /// … and until this age an encoder may still be on its way up to its target. Chromium's took 3.5 s to reach 720 lines at 2 Mbit/s, and its rate looked
    /// like 185 kbit/s at the start (measured): a subscriber with 600 kbit/s started with it, and its link was full before the layer could be withdrawn.
    private static let rampUp = TimeSpan.seconds(5)

    @inline(__always)
    private static func place(_ record: borrowing PacketRecord) -> Int {
        min(record.summary.spatialLayer, spatialLayers - 1) &* temporalLayers &+ record.summary.temporalLayer & 3
    }

    /// Counts a packet.
    @inline(__always)
    mutating func packet(_ record: borrowing PacketRecord, at now: MonotonicTime) {
        let place = Self.place(record)
        if seen == 0 { began = now }
        seen |= 1 << UInt16(place)
        bytes[place].add(Int(record.length), at: now)
    }

    /// Counts the frame that the packet begins.
    @inline(__always)
    mutating func frame(_ record: borrowing PacketRecord, at now: MonotonicTime) {
        frames[Self.place(record)].add(1, at: now)
    }

    /// The bitrate of all layers over the last second.
    func bitrate(at now: MonotonicTime) -> Bitrate { sum(bytes, at: now, eighths: 8) { _, _ in true } }

    /// The bitrate of all layers up to a spatial and a temporal layer, over the last two seconds.
    func bitrate(spatial: Int, temporal: Int, at now: MonotonicTime) -> Bitrate {
        sum(bytes, at: now, eighths: Self.eighths) { $0 <= spatial && $1 <= temporal }
    }

    /// The same while the stream begins, or begins again after a pause, by the rate that the publisher announces for all temporal layers together: in the first
    /// second exactly that rate, in the next ones at least that rate.
    func bitrate(spatial: Int, temporal: Int, announced: Double?, at now: MonotonicTime) -> Bitrate {
        let measured = bitrate(spatial: spatial, temporal: temporal, at: now)
        guard let announced, let age = bytes[0].age(at: now), age < Self.rampUp else { return measured }
        let all = bitrate(spatial: spatial, temporal: Self.temporalLayers - 1, at: now)
        guard all > .zero else { return measured }
        let target = Bitrate.bitsPerSecond(
            Int64(announced * Double(measured.bitsPerSecond) / Double(all.bitsPerSecond)))
        return age < Self.youth ? target : max(measured, target)
    }

    /// Whether any packet of the combination arrived in the last two seconds.
    func has(spatial: Int, temporal: Int, at now: MonotonicTime) -> Bool {
        let place = spatial * Self.temporalLayers + temporal
        return seen & 1 << UInt16(place) != 0 && bytes[place].perSecond(at: now, eighths: Self.eighths) > 0
    }

    /// Share of all frames that remains without the temporal layers above one.
    ///
    /// A frame counts with the layer of its first packet, which is of the lowest spatial layer.
    func shareOfFrames(temporal: Int, at now: MonotonicTime) -> Double {
        var below = 0.0, all = 0.0
        for place in 0..<12 where seen & 1 << UInt16(place) != 0 {
            let rate = frames[place].perSecond(at: now, eighths: Self.eighths)
            all += rate
            if place & 3 <= temporal { below += rate }
        }
        return all > 0 ? below / all : 1
    }

    private func sum(
        _ meters: borrowing InlineArray<12, RateMeter>, at now: MonotonicTime, eighths: Int,
        where included: (Int, Int) -> Bool
    ) -> Bitrate {
        var sum = 0.0
        for place in 0..<12 where seen & 1 << UInt16(place) != 0 && included(place >> 2, place & 3) {
            sum +=
                eighths == Self.eighths
                ? meters[place].steadyPerSecond(at: now, eighths: eighths)
                : meters[place].perSecond(at: now, eighths: eighths)
        }
        return .bitsPerSecond(Int64(sum * 8))
    }
}
