import Synchronization

/// A value of the configuration that may be replaced while others read it: each reader sees the old one or the new one, whole.
public final class Live<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    /// Begins with `value`.
    public init(_ value: Value) { state = Mutex(value) }

    /// The value in force.
    public var value: Value {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
