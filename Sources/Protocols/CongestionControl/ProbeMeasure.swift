/// What a probe showed: the lower of the rates at which its packets left and came.
///
/// Follows libwebrtc's `ProbeBitrateEstimator`: 80 % of the packets must be there; the first packet's bytes do not count on arrival nor the last one's on
/// leaving; a probe that came clearly slower than it left found the bottleneck, and a little less than what it found is taken. Times are microseconds.
///
/// Its own: where delays stray spacing shows nothing. Then a probe is long and of many packets, and the least delay of its last third, set against that of
/// its first, tells whether it made a queue.
struct ProbeMeasure: Sendable {
    private static let share = 0.8
    /// Longer than this it measured something else.
    private static let longest: Int64 = 1_000_000
    /// A link that delivers twice as fast as was sent held the packets back first.
    private static let mostRatio = 2.0

    private(set) var id: UInt8 = 0
    private var packetsNeeded = 0
    private var bytesNeeded = 0
    private var packets = 0
    private var bytes = 0
    private var firstSent: Int64 = .max
    private var lastSent: Int64 = .min
    private var firstArrival: Int64 = .max
    private var lastArrival: Int64 = .min
    private var sizeOfLastSent = 0
    private var sizeOfFirstArrival = 0
    private var isDone = true
    /// How long the probe takes to leave, where delays stray; nil where they do not.
    private var length: Int64?
    /// The least delay of the packets of each third.
    private var least = InlineArray<3, Int64>(repeating: .max)
    /// Of three thirds of a probe the middles of the first and the last are two apart.
    private static let thirds = 3.0 / 2

    init() {}

    /// Waits for the packets of probe `id`, which takes `length` microseconds to leave where delays stray.
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

    /// Takes one packet of the probe that came.
    mutating func take(_ size: Int, sent: Int64, arrival: Int64) {
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

    /// The rate, once enough is there; delays stray by `jitter`. Ends the probe.
    mutating func takeResult(jitter: Int64 = 0) -> Result? {
        guard !isDone, packets >= max(packetsNeeded, 3), bytes >= bytesNeeded else { return nil }
        let sentIn = lastSent - firstSent, arrivedIn = lastArrival - firstArrival
        isDone = true
        guard sentIn > 0, sentIn < Self.longest, arrivedIn > 0, arrivedIn < Self.longest else { return .unclear }
        let sendRate = Double(bytes - sizeOfLastSent) * 8e6 / Double(sentIn)
        if length != nil { return resultInJitter(jitter, sendRate: sendRate, sentIn: Double(sentIn)) }
        let arrivalRate = Double(bytes - sizeOfFirstArrival) * 8e6 / Double(arrivedIn)
        guard arrivalRate <= Self.mostRatio * sendRate else { return .unclear }
        // It began before delays were known to stray.
        if jitter > ProbeState.mostJitter, arrivalRate < 0.9 * sendRate { return .unclear }
        return .rate(arrivalRate < 0.9 * sendRate ? 0.95 * arrivalRate : min(sendRate, arrivalRate))
    }

    private func resultInJitter(_ jitter: Int64, sendRate: Double, sentIn: Double) -> Result {
        guard least[0] < .max, least[2] < .max else { return .unclear }
        // Of ten evenly spread delays the least is a tenth of their spread above it, and strays by as much.
        let growth = Self.thirds * Double(max(least[2] - least[0] - jitter / 4, 0))
        let rate = sendRate * sentIn / (sentIn + growth)
        return .rate(rate < 0.9 * sendRate ? 0.95 * rate : rate)
    }

    enum Result: Sendable, Equatable {
        /// Bits a second.
        case rate(Double)
        /// It came in a burst: its packets waited for something else.
        case unclear
    }
}
