import Primitives

/// RTP timestamps as numbers that never wrap and never jump.
///
/// If a publisher's timestamps jump, arrival times are used and the jump is reported.
struct StreamTimeline {
    /// A timestamp's place.
    struct Place {
        /// Units since the first timestamp, which is 0.
        var time: Int64
        /// By how much the timestamps jumped, if they did.
        var step: Int64?
    }

    let rate: Int64
    private var last: (timestamp: UInt32, time: Int64, arrival: MonotonicTime)?
    /// How much later than its timestamp the last packet arrived. After a stall of the network packets arrive together, and packets lost after them leave a
    /// step of the timestamps without a wait: this is no jump unless the step is longer than that delay.
    private var behind: Int64 = 0
    /// The last report of the publisher's clock, how late packets arrived then, and the report's number, counted from 1.
    private var report: (time: Int64, ntp: UInt64, behind: Int64, number: Int)?
    /// Since when every packet has arrived later than at that report; nil while they do not.
    private var lateSince: MonotonicTime?
    /// The previous report indicates that the media clock stood still, but the packets do not yet.
    private var isDoubted = false

    /// A stall of the network delays packets by seconds, and they come together afterwards. Timestamps that do not advance are a jump only after this time.
    private static let longestStall: Int64 = 10
    /// The offset between voice and lips that is noticed, as a fraction of a second. Reports jitter by a few milliseconds.
    private static let leastStandstill: Int64 = 10
    /// A publisher that was busy sends the media captured meanwhile together, within less than this time, and a report sent in the middle of it is late as
    /// well.
    private static let leastLateness = TimeSpan.milliseconds(250)
    /// Reports farther apart than this, 18 hours, are not compared.
    private static let longestReach: Int64 = 1 << 48

    init(clockRate: UInt32) { rate = Int64(clockRate) }

    /// The position of `timestamp`, without advancing; nil before the first.
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
        // The timestamps of frames that are shown before one that was sent earlier go back a little.
        let isJump =
            moved - max(waited, 0) - behind > rate || moved < -rate || waited - moved > Self.longestStall * rate
        let passed = isJump ? max(waited + behind, 1) : moved
        behind = isJump ? 0 : min(max(0, behind + waited - moved), Self.longestStall * rate)
        let isLate = behind - (report?.behind ?? 0) >= rate / Self.leastStandstill / 2
        lateSince = isLate ? lateSince ?? arrival : nil
        last = (timestamp, before.time + passed, arrival)
        return Place(time: before.time + passed, step: isJump ? moved - passed : nil)
    }

    /// A report of the publisher's clock, its wall clock in 32.32 fixed point seconds. Publishers whose capture stalls, or whose track is removed and added
    /// again, continue with the next timestamp as if no time had passed: the following media is placed later by the time that they left out, which is returned.
    ///
    /// Two signs together show this: the media clock has fallen behind the wall clock since the last report, and packets arrive later by as much for a while.
    /// Setting a wall clock delays no packet, and a stall of the network does not show in the reports. Some publishers' second report contradicts their first,
    /// which means nothing either. A report may arrive before the packets that confirm it: then the next report is compared with the one before it.
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

    /// The time that the media clock has left out since the last report, by the publisher's wall clock; 0 if it is too short to be noticed.
    private func standstill(until time: Int64, _ ntp: UInt64) -> Int64 {
        guard let report, report.number > 1 else { return 0 }
        let passed = Int64(bitPattern: ntp &- report.ntp)
        guard passed > 0, passed < Self.longestReach else { return 0 }
        let stood = (((passed >> 16) * rate) >> 16) - (time - report.time)
        return stood >= rate / Self.leastStandstill ? stood : 0
    }

    /// Whether packets arrive later than at the last report by about `stood`, and for more than a moment.
    private func isLate(by stood: Int64) -> Bool {
        guard let report, let last, let lateSince else { return false }
        return behind - report.behind >= stood / 2 && last.arrival - lateSince >= Self.leastLateness
    }
}
