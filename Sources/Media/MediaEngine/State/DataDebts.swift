import MediaControl
import Primitives

/// The senders that wait for a receiver of reliable messages whose queue is long, each with the cost of what it sent meanwhile.
///
/// The cost counts as held by the control plane until the queue is short again, so that the sender's window closes.
struct DataDebts {
    private var debts: [(source: PeerID, cost: Int)] = []
    private var deliveredBefore = 0
    /// When the receiver must have made progress.
    private(set) var deadline = MonotonicTime.distantFuture

    /// Whether nobody waits.
    var isEmpty: Bool { debts.isEmpty }

    /// `source` waits for a message of this cost; `delivered`: what the receiver has accepted so far; `due`: when it must have accepted more.
    mutating func add(_ cost: Int, of source: PeerID, delivered: Int, due: MonotonicTime) {
        if debts.isEmpty { (deliveredBefore, deadline) = (delivered, due) }
        if let index = debts.firstIndex(where: { $0.source == source }) {
            debts[index].cost += cost
        } else {
            debts.append((source, cost))
        }
    }

    /// Whether the receiver has accepted enough since the last time, so that it has until `due` for as much again.
    mutating func extend(delivered: Int, atLeast least: Int, due: MonotonicTime) -> Bool {
        defer { (deliveredBefore, deadline) = (delivered, due) }
        return delivered - deliveredBefore >= least
    }

    /// Removes and returns all.
    mutating func removeAll() -> [(source: PeerID, cost: Int)] {
        deadline = .distantFuture
        defer { debts = [] }
        return debts
    }
}
