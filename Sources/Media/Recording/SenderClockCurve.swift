/// What a publisher's clock showed over the length of a file, by the reports before and after each moment.
struct SenderClockCurve {
    /// Between moments, in seconds.
    private static let step: Int64 = 5
    /// This many moments around the expected one are examined first: two minutes.
    private static let nearby = 24
    /// A day: no moment of a recording is farther from its reports.
    private static let longestReach: Int64 = 86_400_000_000

    private let begin: Int64
    private let clockRate: Int64
    private var points: [(time: Int64, microseconds: Int64)] = []

    /// nil without reports.
    init?(_ file: ClockedFile) {
        var runs = Runs(file)
        begin = file.rtpTime
        clockRate = Int64(file.clockRate)
        let end = file.rtpTime + file.duration
        var time = begin
        while true {
            guard let point = runs.microseconds(at: time) else { return nil }
            points.append((time, point))
            guard time < end else { break }
            time = min(time + Self.step * clockRate, end)
        }
    }

    /// What the clock showed at RTP time `time`.
    func microseconds(at time: Int64) -> Int64 {
        let index = self.index(of: time)
        let point = points[index]
        guard time >= point.time, index + 1 < points.count else {
            return point.microseconds + (time - point.time) * 1_000_000 / clockRate
        }
        let next = points[index + 1]
        // As doubles: a clock may jump by any number of years between the two.
        let part = Double(time - point.time) / Double(next.time - point.time)
        return point.microseconds + Int64(Double(next.microseconds - point.microseconds) * part)
    }

    /// The last point that is not after `time`.
    private func index(of time: Int64) -> Int {
        min(max(0, Int((time - begin) / (Self.step * clockRate))), points.count - 1)
    }

    /// The RTP time at which the clock showed `microseconds`; of several, after a jump back, the one nearest to `expected`.
    func time(of microseconds: Int64, near expected: Int64) -> Int64 {
        let middle = index(of: expected)
        let around = max(0, middle - Self.nearby)..<min(points.count, middle + Self.nearby)
        if let found = time(of: microseconds, near: expected, in: around)
            ?? time(of: microseconds, near: expected, in: points.indices)
        {
            return found
        }
        // Before the first or after the last moment, or within a jump forward, which is skipped at once. A clock may show anything.
        let nearest =
            points.min {
                (abs($0.microseconds - microseconds), $0.time) < (abs($1.microseconds - microseconds), $1.time)
            }
            ?? (expected, microseconds)
        let apart = min(max(microseconds - nearest.microseconds, -Self.longestReach), Self.longestReach)
        return nearest.time + apart * clockRate / 1_000_000
    }

    private func time(of microseconds: Int64, near expected: Int64, in range: Range<Int>) -> Int64? {
        var best: Int64?
        for index in range.dropLast() {
            let point = points[index], next = points[index + 1]
            guard point.microseconds <= microseconds, microseconds <= next.microseconds,
                next.microseconds > point.microseconds
            else { continue }
            let part =
                Double(microseconds - point.microseconds) / Double(next.microseconds - point.microseconds)
            let found = point.time + Int64(Double(next.time - point.time) * part)
            if best.map({ abs(found - expected) < abs($0 - expected) }) ?? true { best = found }
        }
        return best
    }

    /// The reports between two jumps of the publisher's clock, and how far they were looked through.
    private struct Runs {
        private var runs: [[(time: Int64, ntp: UInt64)]] = []
        private var run = 0
        private var next = 0
        private let clockRate: Int

        /// A single report before a jump is left out: the second report of some publishers contradicts the first.
        init(_ file: ClockedFile) {
            clockRate = file.clockRate
            var watch = SenderClockFit()
            for report in file.reports {
                if runs.isEmpty || watch.isApart(from: report, clockRate: clockRate) { runs.append([]) }
                watch.add(time: report.time, ntp: report.ntp)
                runs[runs.count - 1].append(report)
            }
            if runs.count > 1, runs[0].count == 1 { runs.removeFirst() }
        }

        /// The clock's time at `time`, by the reports of its run before and after it. Times come in order.
        mutating func microseconds(at time: Int64) -> Int64? {
            guard !runs.isEmpty else { return nil }
            while run + 1 < runs.count, runs[run + 1][0].time <= time { (run, next) = (run + 1, 0) }
            while next < runs[run].count, runs[run][next].time < time { next += 1 }
            let count = runs[run].count
            let first = max(0, min(next - SenderClockFit.window / 2, count - SenderClockFit.window))
            var fit = SenderClockFit()
            for index in first..<min(count, first + SenderClockFit.window) {
                fit.add(time: runs[run][index].time, ntp: runs[run][index].ntp)
            }
            return fit.microseconds(at: time, clockRate: clockRate)
        }
    }
}
