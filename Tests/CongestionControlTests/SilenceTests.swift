import Primitives
import Testing

@testable import CongestionControl

/// What is an outage, and what only looks like one: packets and reports that are lost just before nothing more is sent.
@Suite("Missing feedback")
struct SilenceTests {
    @Test("H7: the report on the last packets of a stream is lost: the estimate does not change", arguments: [1, 2])
    func lostReport(count: Int) {
        var line = ReportedLine()
        line.stream(seconds: 10)
        let before = line.estimate
        line.reportsToLose = count
        line.idle(seconds: 20)
        #expect(line.estimator.phase == .measuring)
        #expect(line.estimate >= 0.99 * before, "\(line.estimate) after \(before)")
        #expect(line.estimator.bytesInFlight == 0)
        #expect(line.questions <= 10, "one question")
    }

    @Test("H7: a report in the middle of a stream is lost: its packets no longer count as in flight")
    func lostReportWithin() {
        var line = ReportedLine()
        line.stream(seconds: 10)
        line.reportsToLose = 1
        line.stream(seconds: 2)
        line.idle(seconds: 0.5)
        #expect(line.estimator.bytesInFlight == 0)
    }

    @Test("H7: the last packet of each burst is lost: the estimate does not change", arguments: [true, false])
    func lostTail(canPad: Bool) {
        var line = ReportedLine()
        line.canPad = canPad
        line.stream(seconds: 10)
        let before = line.estimate
        for _ in 0..<10 {
            line.burst(packets: 20, losingLast: 1)
            line.idle(seconds: 5)
            #expect(line.estimator.phase == .measuring)
        }
        #expect(line.estimate >= 0.9 * before, "\(line.estimate) after \(before)")
        #expect(line.questions <= (canPad ? 50 : 0), "one question a burst")
    }

    @Test("H7: every second packet of a still screen is lost", arguments: [500, 1_000, 2_000])
    func lostStills(milliseconds: Int64) {
        var line = ReportedLine()
        line.stream(seconds: 10)
        let before = line.estimate
        for index in 0..<40 {
            line.burst(packets: 1, losingLast: index % 2)
            line.idle(seconds: Double(milliseconds) / 1_000)
            #expect(line.estimator.phase == .measuring)
        }
        // Losses are judged elsewhere.
        #expect(line.estimate >= 0.5 * before, "\(line.estimate) after \(before)")
    }

    @Test("H4: an outage while a stream flows is detected after a second, whatever was lost before")
    func outage() {
        var line = ReportedLine()
        line.stream(seconds: 10)
        line.isOut = true
        let since = line.now
        line.stream(seconds: 3) { $0.phase == .silent }
        print("outage noticed after \((line.now - since).seconds) s")
        #expect(line.estimator.phase == .silent)
        #expect(line.now - since <= .milliseconds(1_100))
    }

    @Test("H4: an outage with one frame per second or per two seconds is detected, too", arguments: [1.0, 2.0])
    func outageOfStills(interval: Double) {
        var line = ReportedLine()
        line.stream(seconds: 10)
        line.isOut = true
        let since = line.now
        for _ in 0..<4 where line.estimator.phase == .measuring {
            line.burst(packets: 3, losingLast: 0)
            line.idle(seconds: interval)
        }
        #expect(line.estimator.phase == .silent)
        #expect(line.now - since <= .seconds(5))
    }

    @Test("Packets that a report skipped may still be reported as received or lost")
    func lateReport() {
        var estimator = BandwidthEstimator()
        var now = MonotonicTime(milliseconds: 1_000)
        for number in UInt16(65_530)...65_535 { estimator.sent(number, size: 1_000, at: now) }
        for number in UInt16(0)...3 { estimator.sent(number, size: 1_000, at: now) }
        now = now + .milliseconds(50)
        func report(_ items: [(UInt16, Int64?)]) {
            estimator.beginFeedback(at: now)
            for (number, arrival) in items { estimator.report(number, arrival: arrival) }
            estimator.endFeedback(at: now)
        }
        report([(65_530, 5_000_000)])
        report([(1, 5_020_000)])
        #expect(estimator.bytesInFlight == 2 * 1_028, "2 and 3")
        report([(65_531, 5_001_000), (65_532, nil), (65_533, 5_002_000)])
        #expect(estimator.received == 4)
        #expect(estimator.lost == 1)
        #expect(estimator.bytesInFlight == 2 * 1_028)
        report([(2, nil), (3, 5_030_000), (9, 5_030_000)])
        #expect(estimator.bytesInFlight == 0)
        // No report for more than half of all numbers: what comes then is no older for it.
        for number in UInt16(4)...50_000 { estimator.sent(number, size: 1_000, at: now) }
        report([(49_990, 5_040_000)])
        #expect(estimator.bytesInFlight == 10 * 1_028)
    }
}

/// A sender and a receiver that reports each 100 ms on what has come since its last report, in steps of 5 ms.
private struct ReportedLine: ~Copyable {
    var estimator = BandwidthEstimator()
    private(set) var now = MonotonicTime(milliseconds: 1_000)
    /// The next reports do not come.
    var reportsToLose = 0
    /// Nothing comes through.
    var isOut = false
    /// There is something to pad with.
    var canPad = true
    /// Packets of padding so far.
    private(set) var questions = 0
    private var sequence: UInt16 = 65_000
    private var arrived: [(UInt16, Int64)] = []
    private var nextExpected: UInt16?
    private var nextReport = MonotonicTime.zero
    private var nextPacket = MonotonicTime.zero

    var estimate: Double { Double(estimator.estimate(at: now).bitsPerSecond) }

    /// 480 kbit/s, until `isOver`.
    mutating func stream(seconds: Double, until isOver: (borrowing BandwidthEstimator) -> Bool = { _ in false }) {
        let end = now + .microseconds(Int64(seconds * 1e6))
        while now < end, !isOver(estimator) {
            if now >= nextPacket {
                send(1_172, isLost: false)
                nextPacket = now + .milliseconds(20)
            }
            step()
        }
    }

    mutating func burst(packets: Int, losingLast lost: Int) {
        for index in 0..<packets {
            send(1_000, isLost: index >= packets - lost)
            step()
        }
    }

    mutating func idle(seconds: Double) {
        let end = now + .microseconds(Int64(seconds * 1e6))
        while now < end { step() }
    }

    private mutating func send(_ size: Int, isLost: Bool) {
        sequence &+= 1
        estimator.sent(sequence, size: size, at: now)
        if !isLost, !isOut { arrived.append((sequence, now.microseconds + 25_000)) }
    }

    private mutating func step() {
        now = now + .milliseconds(5)
        estimator.advance(to: now)
        while estimator.probeBytesDue(at: now) > 0 {
            guard canPad else {
                estimator.abandonProbe()
                break
            }
            questions += 1
            send(240, isLost: false)
        }
        if now >= nextReport { report() }
    }

    private mutating func report() {
        let ready = arrived.filter { $0.1 + 25_000 <= now.microseconds }
        guard let first = ready.first, let last = ready.last else { return }
        nextReport = now + .milliseconds(100)
        arrived.removeFirst(ready.count)
        let start = nextExpected ?? first.0
        nextExpected = last.0 &+ 1
        guard reportsToLose == 0 else {
            reportsToLose -= 1
            return
        }
        estimator.beginFeedback(at: now)
        for offset in 0...(last.0 &- start) {
            let number = start &+ offset
            estimator.report(number, arrival: ready.first { $0.0 == number }?.1)
        }
        estimator.endFeedback(at: now)
    }
}
