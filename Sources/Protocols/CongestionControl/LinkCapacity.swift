/// What the link was seen to carry when it was full, with how sure that is.
///
/// Follows libwebrtc's `LinkCapacityEstimator`. Where it is known, the rate grows slowly near it.
struct LinkCapacity: Sendable {
    private var estimate: Double?
    private var deviation = 0.4

    init() {}

    var bitsPerSecond: Double? { estimate.map { $0 * 1_000 } }
    var upperBound: Double { estimate.map { ($0 + 3 * spread($0)) * 1_000 } ?? .infinity }
    var lowerBound: Double { estimate.map { max(0, ($0 - 3 * spread($0)) * 1_000) } ?? 0 }

    private func spread(_ estimate: Double) -> Double { (deviation * estimate).squareRoot() }

    /// The link was full at this rate.
    mutating func wasFull(at bitsPerSecond: Double) { update(bitsPerSecond / 1_000, weight: 0.05) }
    /// A probe showed this rate.
    mutating func wasProbed(at bitsPerSecond: Double) { update(bitsPerSecond / 1_000, weight: 0.5) }
    mutating func forget() { estimate = nil }

    private mutating func update(_ sample: Double, weight: Double) {
        let old = estimate ?? sample
        let new = (1 - weight) * old + weight * sample
        let error = new - sample
        deviation = (1 - weight) * deviation + weight * error * error / max(new, 1)
        deviation = min(max(deviation, 0.4), 2.5)
        estimate = new
    }
}
