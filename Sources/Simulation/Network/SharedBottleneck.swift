public import Primitives

/// A bottleneck that several clients share, like the access link of a household or an office: one queue for all of their datagrams.
///
/// Delay, jitter and losses stay those of each client's own link, which then has no rate of its own.
public final class SharedBottleneck {
    /// Rate and queue; may be changed at any time.
    public var link: VirtualLink

    /// An idle bottleneck of this rate.
    public init(rate: Bitrate, queueLimit: TimeSpan = .milliseconds(300)) {
        var model = LinkModel()
        model.rate = rate
        model.queueLimit = queueLimit
        link = VirtualLink(model)
    }

    /// When a datagram that arrives now has passed; nil if it is dropped.
    func pass(_ length: Int, at now: MonotonicTime, random: inout RandomSource) -> MonotonicTime? {
        link.arrivals(of: length, at: now, random: &random).first
    }
}
