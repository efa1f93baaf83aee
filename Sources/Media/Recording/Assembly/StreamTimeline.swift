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
    /// Since when every packet has come later than at that report; nil while they do not.
    private var lateSince: MonotonicTime?
    /// The media clock stood still by the report before this one, and by the packets not yet.
    private var isDoubted = false

    /// A stall of the network delays packets by seconds, and they come together afterwards. Standing timestamps are a jump only after this.
    private static let longestStall: Int64 = 10
    /// What is noticed between a voice and its lips, as a part of a second. Reports jitter by a few milliseconds.
    private static let leastStandstill: Int64 = 10
    /// A publisher that was busy sends together what it has captured meanwhile, within less than this, and its report in the middle of it is late as well.
    private static let leastLateness = TimeInterval.milliseconds(250)
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
        let isLate = behind - (report?.behind ?? 0) >= rate / Self.leastStandstill / 2
        lateSince = isLate ? lateSince ?? arrival : nil
        last = (timestamp, before.time + passed, arrival)
        return Place(time: before.time + passed, step: isJump ? moved - passed : nil)
    }

    /// A report of the publisher's clock, its wall clock in 32.32 fixed point seconds. Publishers whose capture stalls, or whose track is taken away and given back, go on with
    /// the next timestamp as if no time had passed: what follows is placed later by what they have left out, which is returned.
    ///
    /// Two things say so: the media clock has fallen behind the wall clock since the last report, and packets come later by as much for a while. A wall clock that is set moves
    /// no packet, and of packets that the network holds up the reports say nothing. The second report of some publishers contradicts the first: that says nothing either. A report
    /// may come before the packets that bear it out: the next one is compared with the one before it.
    mutating func noteReport(_ timestamp: UInt32, ntp: UInt64) -> Int64? {
        guard let time = peek(timestamp) else { return nil }
        let stood = standstill(until: time, ntp)
        let isBorneOut = stood > 0 && isLate(by: stood)
        isDoubted = stood > 0 && !isBorneOut && !isDoubted
        if isDoubted { return nil }
        if isBorneOut {
            last?.time += stood
            behind = max(0, behind - stood)
        }
        lateSince = nil
        report = (isBorneOut ? time + stood : time, ntp, behind, (report?.number ?? 0) + 1)
        return isBorneOut ? stood : nil
    }

    /// What the media clock has left out since the last report, by the publisher's wall clock; 0 where nobody notices that.
    private func standstill(until time: Int64, _ ntp: UInt64) -> Int64 {
        guard let report, report.number > 1 else { return 0 }
        let passed = Int64(bitPattern: ntp &- report.ntp)
        guard passed > 0, passed < Self.longestReach else { return 0 }
        let stood = (((passed >> 16) * rate) >> 16) - (time - report.time)
        return stood >= rate / Self.leastStandstill ? stood : 0
    }

    /// Whether packets come later than at the last report by `stood`, more or less, and not for a moment only.
    private func isLate(by stood: Int64) -> Bool {
        guard let report, let last, let lateSince else { return false }
        return behind - report.behind >= stood / 2 && last.arrival - lateSince >= Self.leastLateness
    }
}
