import Primitives

extension Member {
    /// The messages that a member has sent: their rate, and the number of the last, if its client counts them.
    struct SentMessages: Sendable {
        private var rate = RateLimit()
        /// 0 if its client does not count them.
        private(set) var lastSequence: UInt32 = 0

        /// Whether a message was sent before and is repeated.
        func includes(_ message: RoomMessage) -> Bool { message.sequence.map { $0 <= lastSequence } ?? false }

        mutating func note(_ message: RoomMessage) { lastSequence = message.sequence ?? lastSequence }

        /// Its client restarts its count.
        mutating func countAnew() { lastSequence = 0 }

        /// Counts a message; even one to nobody costs a search of the roster.
        mutating func charge(_ limits: RoomLimits, at now: MonotonicTime) throws(RoomError) {
            let interval = TimeSpan.nanoseconds(1_000_000_000 / Int64(limits.messagesPerSecond))
            guard rate.accept(every: interval, atOnce: limits.messagesPerSecond * 2, at: now) else {
                throw RoomError(
                    .rateLimited, "more than \(limits.messagesPerSecond) messages per second", retryAfter: .seconds(1))
            }
        }
    }
}
