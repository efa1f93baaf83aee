/// Groups of packets that were sent together, and how much further apart two groups arrived than they were sent.
///
/// Follows draft-ietf-rmcat-gcc-02 sections 5.2 and 5.3 and libwebrtc's `InterArrivalDelta`: a group is what was sent within 5 ms, and a
/// packet that arrived in a burst with the previous one belongs to its group regardless of its send time. A burst is narrower here (1 ms instead of 5,
/// 30 ms long instead of 100): a router sends whole frames, which leave a full bottleneck of some Mbit/s within 5 ms of each other, and groups of 100 ms
/// would hide that its queue grows. Times are microseconds, each on its own clock; only differences on one clock are used.
struct ArrivalGroups: Sendable {
    /// Distances of two groups, in microseconds.
    struct Deltas: Sendable, Equatable {
        var sent: Int64
        var arrival: Int64
    }

    private struct Group {
        var firstSent: Int64 = 0
        var lastSent: Int64 = 0
        var firstArrival: Int64 = 0
        var lastArrival: Int64 = 0
    }

    /// Packets sent within this time are one group.
    private static let length: Int64 = 5_000
    /// Packets that arrived within this time of each other form a burst …
    private static let burstGap: Int64 = 1_000
    /// … which lasts no longer than this.
    private static let burstLength: Int64 = 30_000
    /// A group that arrived this long before its predecessor did not overtake it: the receiver's clock jumped.
    private static let jump: Int64 = 250_000

    private var previous: Group?
    private var current: Group?

    init() {}

    /// Adds one packet; returns the distances of the last two complete groups when it begins a new one.
    mutating func add(sent: Int64, arrival: Int64) -> Deltas? {
        guard var group = current else {
            current = Group(firstSent: sent, lastSent: sent, firstArrival: arrival, lastArrival: arrival)
            return nil
        }
        // A late packet of an older group.
        guard sent >= group.firstSent else { return nil }
        guard sent - group.firstSent > Self.length, !isBurst(group, sent: sent, arrival: arrival) else {
            group.lastSent = max(group.lastSent, sent)
            group.lastArrival = max(group.lastArrival, arrival)
            current = group
            return nil
        }
        defer {
            previous = current
            current = Group(firstSent: sent, lastSent: sent, firstArrival: arrival, lastArrival: arrival)
        }
        guard let previous else { return nil }
        let deltas = Deltas(
            sent: group.lastSent - previous.lastSent, arrival: group.lastArrival - previous.lastArrival)
        // libwebrtc skips groups that arrived before their predecessor. Then jitter, of which only one half remains, looks like an ever-growing queue.
        return deltas.arrival > -Self.jump ? deltas : nil
    }

    private func isBurst(_ group: Group, sent: Int64, arrival: Int64) -> Bool {
        let apart = arrival - group.lastArrival
        let sentApart = sent - group.lastSent
        if sentApart == 0 { return true }
        return apart - sentApart < 0 && apart <= Self.burstGap && arrival - group.firstArrival < Self.burstLength
    }
}
