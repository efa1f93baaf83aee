/// Groups of packets that left together, and how much further apart two groups came than they left.
///
/// Follows draft-ietf-rmcat-gcc-02 sections 5.2 and 5.3 and libwebrtc's `InterArrivalDelta`: a group is what left within 5 ms, and a
/// packet that came in a burst with the one before belongs to its group whatever the clocks say. A burst is narrower here (1 ms instead of 5, 30 ms long
/// instead of 100): a router sends whole frames, which leave a full bottleneck of some Mbit/s within 5 ms of each other, and groups of 100 ms would hide
/// that its queue grows. Times are microseconds, each on its own clock; only differences on one clock are used.
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

    /// Packets within this time of sending are one group.
    private static let length: Int64 = 5_000
    /// Packets that came within this of each other came in a burst …
    private static let burstGap: Int64 = 1_000
    /// … which lasts no longer than this.
    private static let burstLength: Int64 = 30_000
    /// A group that came so much before its predecessor was not overtaken by it: the receiver's clock jumped.
    private static let jump: Int64 = 250_000

    private var previous: Group?
    private var current: Group?

    init() {}

    /// Takes one packet; the distances of the last two complete groups when it begins a new one.
    mutating func take(sent: Int64, arrival: Int64) -> Deltas? {
        guard var group = current else {
            current = Group(firstSent: sent, lastSent: sent, firstArrival: arrival, lastArrival: arrival)
            return nil
        }
        // A packet of an older group came late.
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
        // libwebrtc leaves out what came before its predecessor. Then jitter, whose other half stays, looks like a queue that grows without end.
        return deltas.arrival > -Self.jump ? deltas : nil
    }

    private func isBurst(_ group: Group, sent: Int64, arrival: Int64) -> Bool {
        let apart = arrival - group.lastArrival
        let sentApart = sent - group.lastSent
        if sentApart == 0 { return true }
        return apart - sentApart < 0 && apart <= Self.burstGap && arrival - group.firstArrival < Self.burstLength
    }
}
