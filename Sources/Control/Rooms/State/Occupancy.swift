import Primitives

/// Since when a room is empty, and whether it has ended. A room with one member is not empty.
struct Occupancy: Sendable {
    private var emptySince: MonotonicTime?
    private var hasBeenOccupied = false
    private(set) var hasEnded = false

    init(emptySince now: MonotonicTime) { emptySince = now }

    mutating func memberJoined() {
        emptySince = nil
        hasBeenOccupied = true
    }

    mutating func lastMemberLeft(at now: MonotonicTime) { emptySince = now }

    mutating func end() { hasEnded = true }

    /// When an empty room ends; nil while it has members.
    func deadline(_ policy: RoomPolicy) -> MonotonicTime? {
        emptySince.map { $0 + (hasBeenOccupied ? policy.departureTimeout : policy.emptyTimeout) }
    }
}
