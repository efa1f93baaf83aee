public import Primitives
public import RoomService
import Synchronization

/// How long the calls of the control API take, and which are refused.
public final class CallStatistics: Sendable {
    /// What has been counted until a moment.
    public struct Counts: Sendable {
        /// Seconds until the answer, by operation of the API, such as `GET /v1/rooms/{room}`, so that their number is bounded.
        public var times: [String: Histogram] = [:]
        /// By stable code, of which there are some tens.
        public var refusals: [String: UInt64] = [:]
    }

    /// Most calls take less than a millisecond; those that wait for a media worker or the disk take a few; seconds mean that something hangs.
    private static let bounds = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5]
    private let state = Mutex(Counts())

    /// Nothing was called yet.
    public init() {}

    /// All counts.
    public var counts: Counts { state.withLock { $0 } }

    /// A call of `operation` was answered after `time`; `refusal` is the code if it was refused.
    public func add(_ operation: String, _ time: TimeSpan, refusal: String?) {
        state.withLock { counts in
            counts.times[operation, default: Histogram(bounds: Self.bounds)].add(time.seconds)
            if let refusal { counts.refusals[refusal, default: 0] += 1 }
        }
    }
}
