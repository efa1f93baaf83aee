/// The rate at which packets arrive at the receiver, smoothed.
///
/// Follows libwebrtc's `BitrateEstimator`: samples over windows of 150 ms (500 ms for the first), weighted by their distance from the
/// estimate; lower samples of an application-limited sender count little.
struct AcknowledgedRate: Sendable {
    private static let window: Int64 = 150_000
    private static let firstWindow: Int64 = 500_000

    private var sum = 0
    private var filled: Int64 = 0
    private var last: Int64?
    private var variance = 50.0
    /// Kilobits per second.
    private var estimate: Double?

    init() {}

    /// Bits per second; nil before half a second of packets.
    var bitsPerSecond: Double? { estimate.map { $0 * 1_000 } }

    /// Adds one packet; `arrival` in microseconds.
    mutating func add(_ size: Int, arrival: Int64, isApplicationLimited: Bool) {
        let window = estimate == nil ? Self.firstWindow : Self.window
        if let last {
            let elapsed = arrival - last
            // A packet that arrived before its predecessor counts at the time of the predecessor.
            if elapsed > 0 { filled += elapsed }
            if elapsed > window {
                sum = 0
                filled %= window
            }
        }
        last = max(last ?? arrival, arrival)
        if filled >= window {
            let sample = Double(sum) * 8_000 / Double(window)
            filled -= window
            sum = 0
            update(sample, isApplicationLimited: isApplicationLimited)
        }
        sum += size
    }

    private mutating func update(_ sample: Double, isApplicationLimited: Bool) {
        guard let old = estimate else {
            estimate = sample
            return
        }
        let scale = isApplicationLimited && sample < old ? 20.0 : 10.0
        let uncertainty = scale * abs(old - sample) / max(old, 1)
        let sampleVariance = uncertainty * uncertainty
        let predicted = variance + 5
        estimate = max((sampleVariance * old + predicted * sample) / (sampleVariance + predicted), 1)
        variance = sampleVariance * predicted / (sampleVariance + predicted)
    }

    /// The rate is about to change for a known reason.
    mutating func expectChange() { variance += 200 }
}
