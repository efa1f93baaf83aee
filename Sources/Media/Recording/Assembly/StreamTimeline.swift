import Primitives

/// RTP timestamps as numbers that never wrap and never jump.
///
/// Where a publisher's timestamps jump, arrival times are followed and the jump is reported.
struct StreamTimeline {
    /// A timestamp's place.
    struct Place {
        /// Units since the first timestamp, which is 0.
        var time: Int64
        /// By how much the timestamps jumped, where they did.
        var step: Int64?
    }

    let rate: Int64
    private var last: (timestamp: UInt32, time: Int64, arrival: MonotonicTime)?
    /// How much later than its timestamp says the last one came. After a stall of the network packets come together, and what is lost behind them leaves a step of the
    /// timestamps without a wait: no jump, as long as it is no longer than that.
    private var behind: Int64 = 0
    /// The last report of the publisher's clock, how much later the packets came then, and its number from 1 on.
    private var report: (time: Int64, ntp: UInt64, behind: Int64, number: Int)?

    /// A stall of the network delays packets by seconds, and they come together afterwards. Standing timestamps are a jump only after this.
    private static let longestStall: Int64 = 10
    /// What is noticed between a voice and its lips, as a part of a second. Reports jitter by a few milliseconds.
    private static let leastStandstill: Int64 = 10
    /// Reports farther apart than this, 18 hours, say nothing.
    private static let longestReach: Int64 = 1 << 48

    init(clockRate: UInt32) { rate = Int64(clockRate) }

    /// Where `timestamp` lies without moving on; nil before the first.
    func peek(_ timestamp: UInt32) -> Int64? {
        last.map { $0.time + Int64(Int32(bitPattern: timestamp &- $0.timestamp)) }
    }

    /// The place of the next frame or packet.
    mutating func place(_ timestamp: UInt32, arrival: MonotonicTime) -> Place {
        guard let before = last else {
            last = (timestamp, 0, arrival)
            return Place(time: 0)
        }
        let moved = Int64(Int32(bitPattern: timestamp &- before.timestamp))
        let waited = (arrival - before.arrival).nanoseconds / 1_000 * rate / 1_000_000
        // Frames that are shown before one that was sent earlier go back a little.
        let isJump =
            moved - max(waited, 0) - behind > rate || moved < -rate || waited - moved > Self.longestStall * rate
        let passed = isJump ? max(waited + behind, 1) : moved
        behind = isJump ? 0 : min(max(0, behind + waited - moved), Self.longestStall * rate)
        last = (timestamp, before.time + passed, arrival)
        return Place(time: before.time + passed, step: isJump ? moved - passed : nil)
    }

    /// A report of the publisher's clock, its wall clock in 32.32 fixed point seconds. Publishers whose capture stalls, or whose track is taken away and given back, go on with
    /// the next timestamp as if no time had passed: what follows is placed later by what they have left out, which is returned.
    ///
    /// Two things say so: the media clock has fallen behind the wall clock since the last report, and packets come later by as much. A wall clock that is set moves
    /// no packet, and of packets that the network holds up the reports say nothing. The second report of some publishers contradicts the first: that says nothing either.
    mutating func noteReport(_ timestamp: UInt32, ntp: UInt64) -> Int64? {
        guard var time = peek(timestamp) else { return nil }
        defer { report = (time, ntp, behind, (report?.number ?? 0) + 1) }
        guard let former = report, former.number > 1 else { return nil }
        let passed = Int64(bitPattern: ntp &- former.ntp)
        guard passed > 0, passed < Self.longestReach else { return nil }
        let stood = (((passed >> 16) * rate) >> 16) - (time - former.time)
        guard stood >= rate / Self.leastStandstill, behind - former.behind >= stood / 2 else { return nil }
        last?.time += stood
        behind = max(0, behind - stood)
        time += stood
        return stood
    }
}
