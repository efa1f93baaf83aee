public import AccessTokens
public import Primitives
import Synchronization

/// How many calls one API key may make: a program that runs wild is refused, and the server's time is left for people's calls.
public final class CallLimit: Sendable {
    private let perSecond: Live<Int>
    /// One for each key whose token was verified, and one for each of a few kinds of its calls: their number is bounded by the configured keys.
    private let limits = Mutex<[String: RateLimit]>([:])

    /// `perSecond` calls of each key, in bursts of up to two seconds' worth.
    public init(perSecond: Live<Int>) { self.perSecond = perSecond }

    /// Accepts one call of `key`; false where there have been too many.
    public func accept(_ key: String, at now: MonotonicTime) -> Bool {
        let perSecond = perSecond.value
        return limits.withLock { limits in
            limits[key, default: RateLimit()].accept(
                every: .seconds(1) / Int64(perSecond), atOnce: 2 * perSecond, at: now)
        }
    }
}

extension AccessClaims {
    /// The budget that calls with this token count against. A participant that moderates its room has a token of the same key as operators and backends, and
    /// must not use up their calls.
    public var callBudget: String {
        let isParticipant = video.roomJoin && video.room?.isEmpty == false
        return isParticipant ? "moderators of \(apiKey)" : apiKey
    }
}
