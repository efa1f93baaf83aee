/// Whether queues on the path grow, by the slope of the one-way delay.
///
/// Follows libwebrtc's `TrendlineEstimator` (window 20, smoothing 0.9, gain 4) and, for the threshold that adapts so that a competing flow
/// that fills queues does not starve this one, draft-ietf-rmcat-gcc-02 section 5.4 with libwebrtc's constants. The draft's own constants, which lower the
/// threshold over seconds, hold more against TCP but make several of these flows on one queue less fair; `CrossTrafficQueue` achieves the former without the
/// latter.
struct DelayTrend: Sendable {
    private static let window = 20
    private static let leastGroups = 6
    private static let smoothing = 0.9
    private static let gain = 4.0
    /// The slope has full weight after this many groups.
    private static let confident = 60.0
    /// Exceeding the threshold for this many milliseconds, and by more than one group, is overuse.
    private static let patience = 10.0
    /// Microseconds without sending.
    private static let pause: Int64 = 250_000
    private static let upward = 0.0087
    private static let downward = 0.039
    /// A spike this far above the threshold does not adapt it.
    private static let outlier = 15.0

    /// Milliseconds since the first group, and the smoothed delay.
    private var times = InlineArray<20, Double>(repeating: 0)
    private var delays = InlineArray<20, Double>(repeating: 0)
    private var count = 0
    private var position = 0
    private var groups = 0.0
    private var firstArrival: Int64?
    private var accumulated = 0.0
    private var smoothed = 0.0
    private var lastSlope = 0.0
    private var timeOver = -1.0
    private var timesOver = 0
    private var lastAdapted: Int64?
    /// The threshold for the weighted slope.
    private(set) var threshold = 12.5
    /// The slope as compared.
    private(set) var weighedSlope = 0.0
    private(set) var usage = Usage.normal
    /// Growth of the delay along the window, microseconds.
    private(set) var growth: Int64 = 0

    init() {}

    /// Adds the distances of two groups; `arrival` is on the receiver's clock, microseconds.
    mutating func add(_ deltas: ArrivalGroups.Deltas, arrival: Int64) {
        groups = min(groups + 1, 1_000)
        let first = firstArrival ?? arrival
        firstArrival = first
        accumulated += Double(deltas.arrival - deltas.sent) / 1_000
        smoothed = Self.smoothing * smoothed + (1 - Self.smoothing) * accumulated
        times[position] = Double(arrival - first) / 1_000
        delays[position] = smoothed
        position = (position + 1) % Self.window
        count = min(count + 1, Self.window)
        // libwebrtc waits for a full window; the gain, which grows with the groups, already limits the weight of few groups, and a start that is
        // twice too fast fills a queue within six.
        let slope = count >= Self.leastGroups ? fit() ?? lastSlope : lastSlope
        if deltas.sent > Self.pause {
            // The sender paused, and all queued packets have been delivered since.
            timeOver = -1
            timesOver = 0
            usage = .normal
        } else {
            detect(slope, sentDelta: Double(deltas.sent) / 1_000)
        }
        lastSlope = slope
        let oldest = times.span[(position + Self.window - count) % Self.window]
        growth = Int64(slope * (Double(arrival - first) / 1_000 - oldest) * 1_000)
        adapt(at: arrival)
    }

    /// Least squares over the window; nil when all arrived at one moment.
    private func fit() -> Double? {
        // Subscripting the arrays themselves would copy all of them.
        let times = times.span, delays = delays.span
        var sumX = 0.0, sumY = 0.0
        for index in 0..<count {
            sumX += times[index]
            sumY += delays[index]
        }
        let meanX = sumX / Double(count), meanY = sumY / Double(count)
        var numerator = 0.0, denominator = 0.0
        for index in 0..<count {
            let x = times[index] - meanX
            numerator += x * (delays[index] - meanY)
            denominator += x * x
        }
        return denominator == 0 ? nil : numerator / denominator
    }

    private mutating func detect(_ slope: Double, sentDelta: Double) {
        guard groups >= 2 else { return }
        weighedSlope = min(groups, Self.confident) * slope * Self.gain
        if weighedSlope > threshold {
            // Half the time since the last group was already too much.
            timeOver = timeOver < 0 ? sentDelta / 2 : timeOver + sentDelta
            timesOver += 1
            if timeOver > Self.patience, timesOver > 1, slope >= lastSlope {
                timeOver = 0
                timesOver = 0
                usage = .over
            }
            return
        }
        timeOver = -1
        timesOver = 0
        usage = weighedSlope < -threshold ? .under : .normal
    }

    private mutating func adapt(at arrival: Int64) {
        let last = lastAdapted ?? arrival
        lastAdapted = arrival
        let size = abs(weighedSlope)
        guard size <= threshold + Self.outlier else { return }
        let rate = size < threshold ? Self.downward : Self.upward
        let elapsed = min(max(Double(arrival - last) / 1_000, 0), 100)
        threshold = min(max(threshold + rate * (size - threshold) * elapsed, 6), 600)
    }

    /// The state of the queues.
    enum Usage: Sendable, Equatable {
        /// They drain.
        case under
        case normal
        /// They grow: more is sent than passes.
        case over
    }
}
