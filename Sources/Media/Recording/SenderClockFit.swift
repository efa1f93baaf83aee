import Primitives
import RTP

/// What the publisher's clock showed at any RTP time of a track, by its sender reports: a straight line through the last of them.
///
/// Two tracks of one publisher are aligned by it, however far their media clocks are from the publisher's wall clock. Only differences between tracks
/// of one publisher mean anything.
public struct SenderClockFit: Sendable, Hashable {
    /// With five seconds between two audio reports some three minutes: a longer window follows a clock that warms up too slowly, a shorter one does
    /// not even out the reports' jitter.
    static let window = 40
    /// A jump of the publisher's wall clock. Reports jitter by some milliseconds.
    private static let jump: Int64 = 50_000

    private var anchors: [(time: Int64, microseconds: Int64)] = []

    /// No reports yet.
    public init() {}

    /// By the reports.
    public static func == (a: Self, b: Self) -> Bool {
        a.anchors.elementsEqual(b.anchors) { $0 == $1 }
    }

    /// By their number.
    public func hash(into hasher: inout Hasher) { hasher.combine(anchors.count) }

    /// Adds a report. `ntp` is 32.32 fixed point.
    public mutating func add(time: Int64, ntp: UInt64) {
        anchors.append((time, NTPTime.since1900(ntp).microseconds))
        if anchors.count > Self.window { anchors.removeFirst() }
    }

    /// Maximum number of reports that count.
    public var isFull: Bool { anchors.count >= Self.window }

    /// Whether the publisher's wall clock has jumped between the last report and this one. The second report of some publishers contradicts the
    /// first: that is no jump yet.
    public func jumps(to time: Int64, ntp: UInt64, clockRate: Int) -> Bool {
        anchors.count > 1 && isApart(from: (time, ntp), clockRate: clockRate)
    }

    /// Whether the publisher's wall clock has advanced differently from its media clock since the last report.
    func isApart(from report: (time: Int64, ntp: UInt64), clockRate: Int) -> Bool {
        guard let last = anchors.last, clockRate > 0 else { return false }
        let (time, ntp) = report
        let media = Double(time - last.time) * 1e6 / Double(clockRate)
        return abs(Double(NTPTime.since1900(ntp).microseconds - last.microseconds) - media) > Double(Self.jump)
    }

    /// Microseconds since 1900 on the publisher's clock at `time`; nil before the first report.
    public func microseconds(at time: Int64, clockRate: Int) -> Int64? {
        guard let last = anchors.last, clockRate > 0 else { return nil }
        let rate = Double(clockRate)
        // Relative to the last report, so that doubles suffice; the residual against the nominal clock is what is fitted.
        let points = anchors.map { anchor in
            let x = Double(anchor.time - last.time) / rate
            return (x: x, y: Double(anchor.microseconds - last.microseconds) / 1e6 - x)
        }
        // After the last jump of the publisher's clock.
        var first = 0
        for index in points.indices.dropFirst()
        where abs(points[index].y - points[index - 1].y) * 1e6 > Double(Self.jump) { first = index }
        let used = points[first...]
        let count = Double(used.count)
        let meanX = used.reduce(0) { $0 + $1.x } / count, meanY = used.reduce(0) { $0 + $1.y } / count
        let spread = used.reduce(0) { $0 + ($1.x - meanX) * ($1.x - meanX) }
        let slope = spread > 0 ? used.reduce(0) { $0 + ($1.x - meanX) * ($1.y - meanY) } / spread : 0
        let x = Double(time - last.time) / rate
        return last.microseconds + Int64(((x + meanY + slope * (x - meanX)) * 1e6).rounded())
    }
}
