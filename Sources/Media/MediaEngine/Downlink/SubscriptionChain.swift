/// Iterates over one of the lists that subscriptions belong to. The subscription returned last may be removed from the list.
struct SubscriptionChain: Sequence, IteratorProtocol {
    private let base: UnsafeMutablePointer<SubscriptionState>
    private var index: Int
    private let list: List

    /// The owner of the list.
    enum List { case ofPeer, ofTrack }

    init(_ list: List, from first: Int, in base: UnsafeMutablePointer<SubscriptionState>) {
        self.list = list
        self.base = base
        index = first
    }

    @inline(__always)
    mutating func next() -> UnsafeMutablePointer<SubscriptionState>? {
        guard index >= 0 else { return nil }
        let state = base + index
        index = list == .ofPeer ? state.pointee.nextOfPeer : state.pointee.nextOfTrack
        return state
    }
}

/// The list of one peer's subscriptions, newest first: its links are in the subscriptions themselves.
struct SubscriptionList {
    /// -1 for none.
    private var first = -1
    private(set) var count = 0

    /// The current subscription may be removed during iteration.
    func chain(in base: UnsafeMutablePointer<SubscriptionState>) -> SubscriptionChain {
        SubscriptionChain(.ofPeer, from: first, in: base)
    }

    mutating func add(_ index: Int, in base: UnsafeMutablePointer<SubscriptionState>) {
        base[index].nextOfPeer = first
        if first >= 0 { base[first].previousOfPeer = index }
        first = index
        count += 1
    }

    mutating func remove(_ index: Int, in base: UnsafeMutablePointer<SubscriptionState>) {
        let next = base[index].nextOfPeer, previous = base[index].previousOfPeer
        if next >= 0 { base[next].previousOfPeer = previous }
        if previous >= 0 { base[previous].nextOfPeer = next } else { first = next }
        count -= 1
    }
}
