/// The capacity of the link as seen when it was full, with its certainty.
///
/// Follows libwebrtc's `LinkCapacityEstimator`. Near a known capacity the rate grows slowly. In addition to libwebrtc: if the link's limit was found
/// twice in a row, a probe that shows far more is not proof by itself.
struct LinkCapacity: Sendable {
    private var estimate: Double?
    private var deviation = 0.4
    /// The last limit found for the link, in bits per second; nil: none, or the link carried more since.
    private var end: Double?
    /// The same, if a probe found it: alarms are also raised by queues of others and by passing dips.
    private(set) var probed: Double?
    /// It was found twice in a row. On a path with jitter the result differs each time, and the highest is the most accurate.
    private(set) var isCertain = false
    /// Tolerance for two results to count as the same limit.
    private static let mostStray = 1.1
    /// A probe of some milliseconds was measured at 1.4 to 1.5 times the link (600 kbit/s, Chromium, measured), when the link, a radio or the receiver's
    /// machine delayed its first packets. Links that grow step by step, as radios do, are followed without a second probe.
    private static let doubtful = 1.25

    init() {}

    var bitsPerSecond: Double? { estimate.map { $0 * 1_000 } }
    var upperBound: Double { estimate.map { ($0 + 3 * spread($0)) * 1_000 } ?? .infinity }
    var lowerBound: Double { estimate.map { max(0, ($0 - 3 * spread($0)) * 1_000) } ?? 0 }

    private func spread(_ estimate: Double) -> Double { (deviation * estimate).squareRoot() }

    /// The link was full at this rate.
    mutating func wasFull(at bitsPerSecond: Double) {
        noteEnd(bitsPerSecond)
        probed = nil
        update(bitsPerSecond / 1_000, weight: 0.05)
    }
    /// The rate was set to this by a probe.
    mutating func wasProbed(at bitsPerSecond: Double) { update(bitsPerSecond / 1_000, weight: 0.5) }
    mutating func forget() { estimate = nil }
    /// The link has changed.
    mutating func forgetAll() { self = LinkCapacity() }

    /// Whether a probe's result exceeds the known capacity, so that another probe should confirm it.
    func isBeyond(_ result: Double) -> Bool { isCertain && end.map { result > $0 * Self.doubtful } ?? false }

    /// A probe sent at `rate` arrived at `result`: if slower, that is the link's limit; if as fast, the limit is higher.
    mutating func noteProbe(_ result: Double, of rate: Double) {
        if result < 0.9 * rate {
            noteEnd(result)
            probed = result
            return
        }
        guard let known = end, result > known else { return }
        end = nil
        probed = nil
        isCertain = false
    }

    private mutating func noteEnd(_ bitsPerSecond: Double) {
        isCertain = end.map { bitsPerSecond < $0 * Self.mostStray && $0 < bitsPerSecond * Self.mostStray } ?? false
        end = bitsPerSecond
    }

    private mutating func update(_ sample: Double, weight: Double) {
        let old = estimate ?? sample
        let new = (1 - weight) * old + weight * sample
        let error = new - sample
        deviation = (1 - weight) * deviation + weight * error * error / max(new, 1)
        deviation = min(max(deviation, 0.4), 2.5)
        estimate = new
    }
}
