/// Subscriptions along one of the lists that they are members of. The one that was returned last may leave the list.
struct SubscriptionChain: Sequence, IteratorProtocol {
    private let base: UnsafeMutablePointer<SubscriptionState>
    private var index: Int
    private let list: List

    /// Whose list it is.
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
