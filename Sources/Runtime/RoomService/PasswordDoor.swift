import Cryptography
import Dispatch
import NetworkIO
import Primitives
import Rooms
import Synchronization

/// Hashes and checks room passwords, one at a time on a separate thread: a hash is slow by design, and only its caller waits for it.
///
/// A client that guesses wrong too often is refused without a check for a while, so that a password cannot be found by trying.
final class PasswordDoor: Sendable {
    enum Outcome: Sendable, Hashable {
        case right, wrong
        /// Too many wrong passwords from this source; try again after this.
        case tooMany(retryAfter: TimeSpan)
        /// Too many wait already.
        case overloaded
    }

    /// The longest password, in characters as JSON Schema counts them: Unicode code points. The time of hashing is proportional to it.
    static let maximumLength = 256
    /// After this many wrong ones within the window the next is not checked: half a million guesses take a week.
    static let wrongTries = 10
    static let window = TimeSpan.seconds(10)
    /// The maximum number of remembered sources of wrong guesses; beyond it all are forgotten, which costs an attacker 4,096 addresses.
    private static let maximumSources = 4_096
    /// Three seconds of hashing; a caller that would wait longer is refused.
    private static let maximumWaiting = 64

    /// The source of a guess, and its room.
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

    /// The hash of a new password; nil if too many wait or memory runs out.
    func hash(_ password: String) async -> PasswordHash? { await run { PasswordHash(password) } ?? nil }

    /// Whether `password` is the one that `hash` was made from.
    func check(
        _ password: String, _ hash: PasswordHash, from source: Source, now: @escaping @Sendable () -> MonotonicTime
    ) async -> Outcome {
        let outcome = await run { [self] () -> Outcome in
            // Checked here and not earlier: those before it in the queue may have been wrong.
            if let wait = waitingTime(of: source, at: now()) { return .tooMany(retryAfter: wait) }
            guard !hash.matches(password) else { return .right }
            note(source, at: now())
            return .wrong
        }
        return outcome ?? .overloaded
    }

    private func waitingTime(of source: Source, at now: MonotonicTime) -> TimeSpan? {
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
    /// The thread that carries a room's media does not respond.
    static let workerHangs = RoomError(
        .mediaUnavailable, "the media worker of this room does not answer", retryAfter: .seconds(5))
    static let tooManyPasswords = RoomError(
        .overloaded, "too many passwords are being checked", retryAfter: .seconds(3))
}
