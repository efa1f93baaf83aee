public import Primitives

/// A bottleneck that several clients are behind, as a household or an office is behind its access: one queue for all of their datagrams.
///
/// Delay, jitter and losses stay those of each client's own link, which has no rate of its own then.
public final class SharedBottleneck {
    /// Rate and queue; may be changed at any time.
    public var link: VirtualLink

    /// An idle bottleneck of this rate.
    public init(rate: Bitrate, queueLimit: TimeInterval = .milliseconds(300)) {
        var model = LinkModel()
        model.rate = rate
        model.queueLimit = queueLimit
        link = VirtualLink(model)
    }

    /// When a datagram that comes now has passed; nil when it is dropped.
    func pass(_ length: Int, at now: MonotonicTime, random: inout RandomSource) -> MonotonicTime? {
        link.arrivals(of: length, at: now, random: &random).first
    }
}
