import Primitives

/// The retransmission timeout (RFC 9260 section 6.3) and the timer that runs by it.
struct RetransmissionTimer {
    /// Values of real-time peers instead of RFC 9260 section 16: recovery after an outage must not wait for a minute.
    static let initial = TimeSpan.milliseconds(500)
    static let minimum = TimeSpan.milliseconds(200)
    static let maximum = TimeSpan.seconds(3)

    private var trips = RoundTrip()
    private var variation = TimeSpan.zero
    private(set) var timeout = RetransmissionTimer.initial
    private(set) var deadline = MonotonicTime.distantFuture

    var isRunning: Bool { deadline != .distantFuture }

    /// A round trip was measured.
    mutating func measured(_ trip: TimeSpan) {
        let previous = trips.smoothed
        guard trips.measured(trip) else { return }
        if let previous {
            let difference = TimeSpan(nanoseconds: abs((previous - trip).nanoseconds))
            variation = (variation * 3 + difference) / 4
        } else {
            variation = trip / 2
        }
        timeout = min(max((trips.smoothed ?? trip) + variation * 4, Self.minimum), Self.maximum)
    }

    mutating func start(at now: MonotonicTime) { deadline = now + timeout }
    mutating func stop() { deadline = .distantFuture }

    /// It has expired: the next timeout is twice as long.
    mutating func backOff(at now: MonotonicTime) {
        timeout = min(timeout * 2, Self.maximum)
        start(at: now)
    }
}
