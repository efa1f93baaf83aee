public import Primitives

/// A token bucket without a queue, as providers use for policing: what exceeds the rate once the bucket is empty is dropped, and nothing waits.
public struct Policer: Sendable, Hashable {
    /// The long-term rate, IPv4 and UDP headers included.
    public var rate: Bitrate
    /// Bytes that pass at once after a pause.
    public var burst: Int

    public init(rate: Bitrate, burst: Int = 30_000) {
        self.rate = rate
        self.burst = burst
    }

    /// Whether `bits` conform now (the generic cell rate algorithm, ITU-T I.371 annex A). `fullAt` is when the bucket will be full again.
    func admits(_ bits: Int64, fullAt: inout MonotonicTime, at now: MonotonicTime) -> Bool {
        guard rate > .zero else { return false }
        let full = max(fullAt, now) + .nanoseconds(bits * 1_000_000_000 / rate.bitsPerSecond)
        guard full - now <= .nanoseconds(Int64(burst) * 8_000_000_000 / rate.bitsPerSecond) else { return false }
        fullAt = full
        return true
    }
}
