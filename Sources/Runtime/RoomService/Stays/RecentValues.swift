/// The newest values of a series, as many as a capacity says.
struct RecentValues<Value: Sendable>: Sendable {
    private let capacity: Int
    private var values: [Value] = []
    /// Of the oldest, once there are as many as there may be.
    private var head = 0

    init(capacity: Int) { self.capacity = max(1, capacity) }

    var count: Int { values.count }

    /// Oldest first.
    var all: [Value] { Array(values[head...]) + values[..<head] }

    mutating func append(_ value: Value) {
        guard values.count == capacity else { return values.append(value) }
        values[head] = value
        head = (head + 1) % capacity
    }
}
