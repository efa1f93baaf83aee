import Primitives

/// The next deadlines of the engine's peers, tracks and rooms, at most one of each.
struct Deadlines: ~Copyable {
    /// What a deadline belongs to, by its index in `Tables`.
    enum Owner {
        case peer(Int)
        /// A packet of the track is held until then.
        case track(Int)
        case room(Int)

        @inline(__always) fileprivate init(number: Int) {
            let index = number / 3
            switch number % 3 {
            case 0: self = .peer(index)
            case 1: self = .track(index)
            default: self = .room(index)
            }
        }

        /// In the one heap.
        @inline(__always) fileprivate var number: Int {
            switch self {
            case .peer(let index): index * 3
            case .track(let index): index * 3 + 1
            case .room(let index): index * 3 + 2
            }
        }
    }

    private var heap = DeadlineHeap()

    /// The earliest deadline.
    var next: MonotonicTime { heap.next }

    /// Removes the earliest deadline if it is due at `now`, and returns its owner.
    mutating func popDue(at now: MonotonicTime) -> Owner? { heap.popDue(at: now).map { Owner(number: $0) } }

    /// Sets the deadline of `owner`, replacing an older one.
    @inline(__always)
    mutating func set(_ owner: Owner, to time: MonotonicTime) { heap.set(owner.number, to: time) }

    /// Sets the deadline of `owner` unless it has an earlier one.
    @inline(__always)
    mutating func hasten(_ owner: Owner, to time: MonotonicTime) { heap.hasten(owner.number, to: time) }

    /// Removes the deadline of `owner`.
    mutating func remove(_ owner: Owner) { heap.remove(owner.number) }
}
