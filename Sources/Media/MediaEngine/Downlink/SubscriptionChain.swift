/// The list that a subscription is chained into: that of its subscriber, or that of its track.
enum SubscriptionOwner { case peer, track }

/// The neighbours of a subscription in one list; -1 for none.
struct SubscriptionLinks {
    fileprivate(set) var next = -1
    fileprivate(set) var previous = -1
}

/// Iterates over one of the lists that subscriptions belong to. The subscription returned last may be removed from the list.
struct SubscriptionChain: Sequence, IteratorProtocol {
    private let base: UnsafeMutablePointer<SubscriptionState>
    private var index: Int
    private let owner: SubscriptionOwner

    @inline(__always)
    fileprivate init(_ owner: SubscriptionOwner, from first: Int, in base: UnsafeMutablePointer<SubscriptionState>) {
        self.owner = owner
        self.base = base
        index = first
    }

    /// No subscriptions of any peer.
    @inline(__always)
    static func empty(in base: UnsafeMutablePointer<SubscriptionState>) -> Self { Self(.peer, from: -1, in: base) }

    @inline(__always)
    mutating func next() -> UnsafeMutablePointer<SubscriptionState>? {
        guard index >= 0 else { return nil }
        let state = base + index
        index = owner == .peer ? state.pointee.inPeer.next : state.pointee.inTrack.next
        return state
    }
}

/// The list of the subscriptions of one peer or track, newest first: its links are in the subscriptions themselves.
struct SubscriptionList {
    /// -1 for none.
    private(set) var first = -1
    private(set) var count = 0
    private let owner: SubscriptionOwner

    init(of owner: SubscriptionOwner) { self.owner = owner }

    /// The current subscription may be removed during iteration.
    @inline(__always)
    func chain(in base: UnsafeMutablePointer<SubscriptionState>) -> SubscriptionChain {
        SubscriptionChain(owner, from: first, in: base)
    }

    mutating func add(_ index: Int, in base: UnsafeMutablePointer<SubscriptionState>) {
        base[index].link(in: owner, SubscriptionLinks(next: first, previous: -1))
        if first >= 0 { base[first].setPrevious(in: owner, to: index) }
        first = index
        count += 1
    }

    mutating func remove(_ index: Int, in base: UnsafeMutablePointer<SubscriptionState>) {
        let links = owner == .peer ? base[index].inPeer : base[index].inTrack
        if links.next >= 0 { base[links.next].setPrevious(in: owner, to: links.previous) }
        if links.previous >= 0 {
            base[links.previous].setNext(in: owner, to: links.next)
        } else {
            first = links.next
        }
        count -= 1
    }
}

extension SubscriptionState {
    fileprivate mutating func link(in owner: SubscriptionOwner, _ links: SubscriptionLinks) {
        if owner == .peer { inPeer = links } else { inTrack = links }
    }

    fileprivate mutating func setNext(in owner: SubscriptionOwner, to index: Int) {
        if owner == .peer { inPeer.next = index } else { inTrack.next = index }
    }

    fileprivate mutating func setPrevious(in owner: SubscriptionOwner, to index: Int) {
        if owner == .peer { inPeer.previous = index } else { inTrack.previous = index }
    }
}
