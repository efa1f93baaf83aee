/// The result of a probe: the lower of the rates at which its packets were sent and arrived.
///
/// Follows libwebrtc's `ProbeBitrateEstimator`: 80 % of the packets must have arrived; the first packet's bytes do not count for arrival nor the last one's
/// for sending; a probe that arrived clearly slower than it was sent found the bottleneck, and slightly less than the result is used. Times are microseconds.
///
/// An addition: if delays vary, spacing reveals nothing. Then a probe is long and has many packets, and the minimum delay of its last third, compared with
/// that of its first, shows whether it built a queue.
struct ProbeMeasure: Sendable {
    private static let share = 0.8
    /// A longer probe measured something else.
    private static let longest: Int64 = 1_000_000
    /// A link that delivers twice as fast as was sent had delayed the packets first.
    private static let mostRatio = 2.0

    private(set) var id: UInt8 = 0
    private var packetsNeeded = 0
    private var bytesNeeded = 0
    private var packets = 0
    /// Packets of the probe that are reported as lost.
    private(set) var lost = 0
    private var bytes = 0
    private var firstSent: Int64 = .max
    private var lastSent: Int64 = .min
    private var firstArrival: Int64 = .max
    private var lastArrival: Int64 = .min
    private var sizeOfLastSent = 0
    private var sizeOfFirstArrival = 0
    private var isDone = true
    /// How long the probe takes to send, if delays vary; nil if they do not.
    private var length: Int64?
    /// The minimum delay of the packets of each third.
    private var least = InlineArray<3, Int64>(repeating: .max)
    /// The midpoints of the first and the last third are two thirds apart.
    private static let thirds = 3.0 / 2

    init() {}

    /// Waits for the packets of probe `id`, which takes `length` microseconds to send if delays vary.
    mutating func begin(_ id: UInt8, packets: Int, bytes: Int, length: Int64? = nil) {
        self = ProbeMeasure()
        self.id = id
        packetsNeeded = Int((Double(packets) * Self.share).rounded(.down))
        bytesNeeded = Int((Double(bytes) * Self.share).rounded(.down))
        self.length = length
        isDone = false
    }

    var isWaiting: Bool { !isDone }

    mutating func giveUp() { isDone = true }

    /// A packet of the probe is reported as lost.
    mutating func addLost() { lost += 1 }

    /// It has arrived after all.
    mutating func recovered() { lost = max(0, lost - 1) }

    /// Adds one received packet of the probe.
    mutating func add(_ size: Int, sent: Int64, arrival: Int64) {
        guard !isDone else { return }
        packets += 1
        bytes += size
        if sent < firstSent { firstSent = sent }
        if sent >= lastSent {
            lastSent = sent
            sizeOfLastSent = size
        }
        if arrival < firstArrival {
            firstArrival = arrival
            sizeOfFirstArrival = size
        }
        lastArrival = max(lastArrival, arrival)
        guard let length, length > 0 else { return }
        let third = Int(min(max(3 * (sent - firstSent) / length, 0), 2))
        least[third] = min(least[third], arrival - sent)
    }

    /// The rate, once enough packets have arrived; delays vary by `jitter`. Ends the probe.
    mutating func consumeResult(jitter: Int64 = 0) -> Result? {
        guard !isDone, packets >= max(packetsNeeded, 3), bytes >= bytesNeeded else { return nil }
        let sentIn = lastSent - firstSent, arrivedIn = lastArrival - firstArrival
        isDone = true
        guard sentIn > 0, sentIn < Self.longest, arrivedIn > 0, arrivedIn < Self.longest else { return .unclear }
        let sendRate = Double(bytes - sizeOfLastSent) * 8e6 / Double(sentIn)
        if length != nil { return resultInJitter(jitter, sendRate: sendRate, sentIn: Double(sentIn)) }
        let arrivalRate = Double(bytes - sizeOfFirstArrival) * 8e6 / Double(arrivedIn)
        guard arrivalRate <= Self.mostRatio * sendRate else { return .unclear }
        // It began before delays were known to vary.
        if jitter > ProbeState.mostJitter, arrivalRate < 0.9 * sendRate { return .unclear }
        return .rate(arrivalRate < 0.9 * sendRate ? 0.95 * arrivalRate : min(sendRate, arrivalRate))
    }

    private func resultInJitter(_ jitter: Int64, sendRate: Double, sentIn: Double) -> Result {
        guard least[0] < .max, least[2] < .max else { return .unclear }
        // The minimum of ten evenly spread delays is a tenth of their spread above it, and varies by as much.
        let growth = Self.thirds * Double(max(least[2] - least[0] - jitter / 4, 0))
        let rate = sendRate * sentIn / (sentIn + growth)
        return .rate(rate < 0.9 * sendRate ? 0.95 * rate : rate)
    }

    enum Result: Sendable, Equatable {
        /// Bits per second.
        case rate(Double)
        /// It arrived in a burst: its packets were delayed by something else.
        case unclear
    }
}
