import Synchronization

/// A value of the configuration that may be replaced while others read it: each reader sees the old one or the new one, whole.
public final class Live<Value: Sendable>: Sendable {
    private struct State {
        var value: Value
        var followers: [Int: AsyncStream<Void>.Continuation] = [:]
        var lastFollower = 0
    }

    private let state: Mutex<State>

    /// Begins with `value`.
    public init(_ value: Value) { state = Mutex(State(value: value)) }

    /// The value in force.
    public var value: Value {
        get { state.withLock { $0.value } }
        set {
            state.withLock { state in
                state.value = newValue
                for follower in state.followers.values { follower.yield() }
            }
        }
    }

    /// Gets an element whenever the value is replaced, from now on; replacements that the reader has not yet seen are merged into one.
    public var changes: AsyncStream<Void> {
        let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.lastFollower += 1
            state.followers[state.lastFollower] = continuation
            return state.lastFollower
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { state in state.followers[number] = nil }
        }
        return stream
    }
}
