/// What the publisher's clock showed when a file began, by the reports about that moment.
///
/// Reports of an hour later reveal little about it: with a millisecond of jitter, their line is tens of milliseconds off at that moment. So only the last
/// reports before the file began count, and those after it until there are enough or the clock jumps.
public struct SenderClockStart: Sendable {
    private var fit: SenderClockFit
    private let time: Int64
    private let clockRate: Int
    private var isSettled: Bool
    /// Microseconds since 1900 at the file's first sample; nil before the first report.
    public private(set) var microseconds: Int64?

    /// A file that begins at `time`, after the reports in `earlier`.
    public init(at time: Int64, clockRate: Int, after earlier: SenderClockFit) {
        fit = earlier
        self.time = time
        self.clockRate = clockRate
        isSettled = earlier.isFull
        microseconds = earlier.microseconds(at: time, clockRate: clockRate)
    }

    /// A report has arrived. Returns whether it changes the result.
    public mutating func add(time: Int64, ntp: UInt64) -> Bool {
        guard !isSettled else { return false }
        if fit.jumps(to: time, ntp: ntp, clockRate: clockRate) {
            isSettled = true
            return false
        }
        fit.add(time: time, ntp: ntp)
        isSettled = fit.isFull
        microseconds = fit.microseconds(at: self.time, clockRate: clockRate)
        return true
    }

    /// The publisher's media clock has jumped: what follows is another line.
    public mutating func mediaClockStepped() { if microseconds != nil { isSettled = true } }
}
