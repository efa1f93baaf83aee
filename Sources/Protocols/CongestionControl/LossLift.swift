import Primitives

/// When a probe may lift the bound that losses set, while no video fits and only probes show what the path carries.
///
/// The first probe may do so at once: the tunnel, or whatever lost packets, has ended. A policer also passes probes but drops the packets that follow: after a
/// video that could not be kept, a lift waits, each time twice as long, like failed attempts at a layer.
struct LossLift: Sendable {
    private static let shortest = TimeSpan.seconds(10)
    /// As long as a failed attempt at a layer waits. There, viewers have a smaller layer meanwhile; here they have none.
    private static let longest = TimeSpan.seconds(80)
    /// A video that is kept for this long has not failed: if it ends later, that is due to new losses.
    private static let trial = TimeSpan.seconds(10)

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

    /// Whether a video fits; `isWanted`: a video that does not fit is in demand. A video that is muted or paused has not failed.
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
