/// The newest values of a series, up to a capacity.
struct RecentValues<Value: Sendable>: Sendable {
    private let capacity: Int
    private var values: [Value] = []
    /// The index of the oldest, once the capacity is reached.
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
