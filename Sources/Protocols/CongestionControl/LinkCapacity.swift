/// What the link was seen to carry when it was full, with how sure that is.
///
/// Follows libwebrtc's `LinkCapacityEstimator`. Where it is known, the rate grows slowly near it. Beside that, and not there: where the link's end was found
/// twice in a row, a probe that shows far more is no proof by itself.
struct LinkCapacity: Sendable {
    private var estimate: Double?
    private var deviation = 0.4
    /// Where the link's end was found the last time, in bits a second; nil: it was not, or the link carried more since.
    private var end: Double?
    /// It was found there twice in a row. On a path with jitter it is somewhere else each time, and the highest is the truest.
    private var isCertain = false
    /// What is found at the same place strays by so much.
    private static let mostStray = 1.1
    /// A probe of some milliseconds was read as 1.4 to 1.5 times the link (600 kbit/s, Chromium, measured), where the link, a radio or the receiver's
    /// machine held its first packets back. Links that grow step by step, as radios' do, are followed without a second probe.
    private static let doubtful = 1.25

    init() {}

    var bitsPerSecond: Double? { estimate.map { $0 * 1_000 } }
    var upperBound: Double { estimate.map { ($0 + 3 * spread($0)) * 1_000 } ?? .infinity }
    var lowerBound: Double { estimate.map { max(0, ($0 - 3 * spread($0)) * 1_000) } ?? 0 }

    private func spread(_ estimate: Double) -> Double { (deviation * estimate).squareRoot() }

    /// The link was full at this rate.
    mutating func wasFull(at bitsPerSecond: Double) {
        noteEnd(bitsPerSecond)
        update(bitsPerSecond / 1_000, weight: 0.05)
    }
    /// The rate was set to this by a probe.
    mutating func wasProbed(at bitsPerSecond: Double) { update(bitsPerSecond / 1_000, weight: 0.5) }
    mutating func forget() { estimate = nil }
    /// It is another link.
    mutating func forgetAll() { self = LinkCapacity() }

    /// Whether a probe's result is more than the link is known to carry, so that another probe should say so too.
    func isBeyond(_ result: Double) -> Bool { isCertain && end.map { result > $0 * Self.doubtful } ?? false }

    /// A probe that left at `rate` came at `result`: slower, and that is the link's end, or as fast, and the end is farther.
    mutating func noteProbe(_ result: Double, of rate: Double) {
        if result < 0.9 * rate { return noteEnd(result) }
        guard let known = end, result > known else { return }
        end = nil
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
