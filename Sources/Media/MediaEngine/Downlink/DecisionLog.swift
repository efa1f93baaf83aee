import Forwarding
import MediaControl
import Primitives

/// The last decisions about one peer's videos.
struct DecisionLog {
    /// A minute of a call on a bad link, and a day of one on a good link.
    static let capacity = 64
    private var records: [DecisionRecord] = []
    private var next = 0

    mutating func append(_ record: DecisionRecord) {
        if records.count < Self.capacity {
            records.append(record)
        } else {
            records[next] = record
        }
        next = (next + 1) % Self.capacity
    }

    /// The records as read at `now`, oldest first.
    func records(at now: MonotonicTime) -> [DecisionRecord] {
        let oldest = records.count < Self.capacity ? 0 : next
        var all: [DecisionRecord] = []
        all.reserveCapacity(records.count)
        for offset in records.indices { all.append(records[(oldest + offset) % records.count].read(at: now)) }
        return all
    }

    var memoryBytes: Int { records.capacity * MemoryLayout<DecisionRecord>.stride }
}
