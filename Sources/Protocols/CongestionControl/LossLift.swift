import Primitives

/// When a probe may lift the bound that losses set, while no layer fits and only probes are sent.
///
/// The first time it may at once: what lost packets, a lift or a tunnel, is over. A policer passes probes too, and drops what follows them: a lift soon
/// after another one waits, each time for twice as long, as attempts at a layer do that failed.
struct LossLift: Sendable {
    private static let shortest = TimeInterval.seconds(10)
    private static let longest = TimeInterval.seconds(160)

    private var wait = shortest
    private var allowedAt = MonotonicTime.zero
    /// Probes lift the bound step by step, until a layer fits.
    private var isLifting = false

    init() {}

    /// A probe carried more than the bound; whether it lifts that.
    mutating func mayLift(at now: MonotonicTime) -> Bool {
        if isLifting { return true }
        guard now >= allowedAt else { return false }
        // It held: what comes now is another time of losses.
        if now - allowedAt >= wait { wait = Self.shortest }
        allowedAt = now + wait
        wait = min(wait * 2, Self.longest)
        isLifting = true
        return true
    }

    /// A layer fits again.
    mutating func end() { isLifting = false }
}
