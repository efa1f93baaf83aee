import Primitives

/// When a probe may lift the bound that losses set, while no video fits and only probes show what the path carries.
///
/// The first one may at once: a tunnel, or whatever lost packets, is over. A policer passes probes, too, and drops what follows them: after a video that
/// could not stay, a lift waits, each time for twice as long, as attempts at a layer do that failed.
struct LossLift: Sendable {
    private static let shortest = TimeInterval.seconds(10)
    /// As long as an attempt at a layer that failed waits, whose viewers have a smaller one meanwhile: here they have none.
    private static let longest = TimeInterval.seconds(80)
    /// A video that stays for so long has not failed: what ends it is another time of losses.
    private static let trial = TimeInterval.seconds(10)

    private var wait = shortest
    private var allowedAt = MonotonicTime.zero
    /// Probes lift the bound step by step, until a video fits.
    private var isLifting = false
    /// When a video fitted after a lift; nil while none does.
    private var fitsSince: MonotonicTime?

    init() {}

    /// A probe carried more than the bound; whether it lifts that.
    mutating func mayLift(at now: MonotonicTime) -> Bool {
        isLifting = isLifting || now >= allowedAt
        return isLifting
    }

    /// Whether a video fits; `isWanted`: one that does not is wanted. One that is muted or paused has not failed.
    mutating func update(fitsVideo: Bool, isWanted: Bool = true, at now: MonotonicTime) {
        if fitsVideo {
            if isLifting { fitsSince = now }
            isLifting = false
        } else if let since = fitsSince {
            fitsSince = nil
            if now - since >= Self.trial {
                wait = Self.shortest
            } else if isWanted {
                allowedAt = now + wait
                wait = min(wait * 2, Self.longest)
            }
        }
    }
}
