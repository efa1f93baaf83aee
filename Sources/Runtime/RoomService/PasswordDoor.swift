import Cryptography
import Dispatch
import NetworkIO
import Primitives
import Rooms
import Synchronization

/// Hashes and checks room passwords, one after the other on a thread of its own: a hash is slow by design, and nobody else waits for it.
///
/// Who guesses wrong too often is refused unheard for a while, so that a password is not found by trying.
final class PasswordDoor: Sendable {
    enum Outcome: Sendable, Hashable {
        case right, wrong
        /// Too many wrong ones from there; again after this.
        case tooMany(retryAfter: TimeInterval)
        /// Too many wait already.
        case overloaded
    }

    /// The longest password, in characters as JSON Schema counts them: Unicode code points. Hashing takes time in proportion.
    static let maximumLength = 256
    /// After so many wrong ones within the window the next is not heard: half a million guesses take a week.
    static let wrongTries = 10
    static let window = TimeInterval.seconds(10)
    /// Of sources that guessed wrong, at most so many are remembered; beyond it all are forgotten, which costs an attacker 4,096 addresses.
    private static let maximumSources = 4_096
    /// Three seconds of hashing; who would wait for longer is refused.
    private static let maximumWaiting = 64

    /// Where a guess comes from, and for which room.
    struct Source: Sendable, Hashable {
        private let network: String
        private let room: String

        /// The client at `address`: an IPv6 network of 64 bits belongs to one household, so its addresses are one source.
        init(address: String, room: String) {
            let parsed = SocketAddress(numeric: address)
            network = parsed.map { $0.isIPv4 ? "\($0.low)" : "\($0.high)::" } ?? address
            self.room = room
        }
    }

    private struct State {
        var waiting = 0
        var wrong: [Source: [MonotonicTime]] = [:]
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "passwords", qos: .utility)

    /// The hash of a new password; nil where too many wait or there is no memory.
    func hash(_ password: String) async -> PasswordHash? { await run { PasswordHash(password) } ?? nil }

    /// Whether `password` is the one that `hash` was made of.
    func check(
        _ password: String, _ hash: PasswordHash, from source: Source, now: @escaping @Sendable () -> MonotonicTime
    ) async -> Outcome {
        let outcome = await run { [self] () -> Outcome in
            // Asked here and not before: those before it on the queue may have been wrong.
            if let wait = waitingTime(of: source, at: now()) { return .tooMany(retryAfter: wait) }
            guard !hash.matches(password) else { return .right }
            note(source, at: now())
            return .wrong
        }
        return outcome ?? .overloaded
    }

    private func waitingTime(of source: Source, at now: MonotonicTime) -> TimeInterval? {
        state.withLock { state in
            let recent = (state.wrong[source] ?? []).filter { now - $0 < Self.window }
            state.wrong[source] = recent.isEmpty ? nil : recent
            guard recent.count >= Self.wrongTries, let oldest = recent.first else { return nil }
            return Self.window - (now - oldest)
        }
    }

    private func note(_ source: Source, at now: MonotonicTime) {
        state.withLock { state in
            if state.wrong.count >= Self.maximumSources { state.wrong = [:] }
            state.wrong[source, default: []].append(now)
        }
    }

    private func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value? {
        let mayWait = state.withLock { state in
            guard state.waiting < Self.maximumWaiting else { return false }
            state.waiting += 1
            return true
        }
        guard mayWait else { return nil }
        return await withCheckedContinuation { continuation in
            queue.async { [self] in
                let value = work()
                state.withLock { $0.waiting -= 1 }
                continuation.resume(returning: value)
            }
        }
    }
}

extension RoomError {
    /// The thread that carries a room's media does not answer.
    static let workerHangs = RoomError(
        .mediaUnavailable, "the media worker of this room does not answer", retryAfter: .seconds(5))
    static let tooManyPasswords = RoomError(
        .overloaded, "too many passwords are being checked", retryAfter: .seconds(3))
}
