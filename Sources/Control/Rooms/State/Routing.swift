import MediaControl
import Primitives

/// The tracks of a room, and which member receives which of them.
struct Routing: Sendable {
    private var tracks: [TrackID: RoomTrack] = [:]
    private var trackBySID: [String: TrackID] = [:]
    private var subscriptions: [SubscriptionID: RoomSubscription] = [:]
    /// In the order of publication.
    private var tracksByPublisher: [SessionID: [TrackID]] = [:]
    /// In the order of subscription.
    private var subscriptionsByMember: [SessionID: [SubscriptionID]] = [:]
    /// In the order of subscription.
    private var subscribersByTrack: [TrackID: [SubscriptionID]] = [:]
    /// The number of subscriptions on which the worker sends each encoding; for a track, the number that wait for an encoding that their sections can carry.
    private var demand: [Demand: Int] = [:]

    /// What the worker was commanded to send on a subscription.
    fileprivate enum Demand: Sendable, Hashable {
        case encoding(TrackID)
        case noEncoding(of: TrackID)
    }

    var trackCount: Int { tracks.count }
    var subscriptionCount: Int { subscriptions.count }
    var publisherCount: Int { tracksByPublisher.count }

    subscript(id: TrackID) -> RoomTrack? { tracks[id] }
    subscript(id: SubscriptionID) -> RoomSubscription? { subscriptions[id] }
}

// MARK: Tracks

extension Routing {
    func track(sid: String) -> RoomTrack? { trackBySID[sid].flatMap { tracks[$0] } }
    func tracks(of publisher: SessionID) -> [TrackID] { tracksByPublisher[publisher] ?? [] }
    /// All that a publisher sends: its tracks, each followed by its encoding in the backup codec.
    func encodings(of publisher: SessionID) -> [TrackID] {
        tracks(of: publisher).flatMap { tracks[$0]?.encodings ?? [] }
    }
    func publishes(_ session: SessionID) -> Bool { tracksByPublisher[session] != nil }
    func subscribers(of track: TrackID) -> [SubscriptionID] { subscribersByTrack[track] ?? [] }

    mutating func insert(_ track: RoomTrack) {
        tracks[track.id] = track
        if let main = track.main { return update(main) { $0.backup = track.id } }
        trackBySID[track.info.sid] = track.id
        tracksByPublisher[track.publisher, default: []].append(track.id)
    }

    /// The caller has ended or switched the subscriptions to it.
    mutating func remove(_ id: TrackID) {
        guard let track = tracks.removeValue(forKey: id) else { return }
        if let main = track.main { return update(main) { $0.backup = nil } }
        trackBySID[track.info.sid] = nil
        subscribersByTrack[id] = nil
        tracksByPublisher[track.publisher]?.removeAll { $0 == id }
        if tracksByPublisher[track.publisher]?.isEmpty == true { tracksByPublisher[track.publisher] = nil }
    }

    /// Does nothing if there is no such track.
    mutating func update(_ id: TrackID, _ change: (inout RoomTrack) -> Void) {
        guard let index = tracks.index(forKey: id) else { return }
        change(&tracks.values[index])
    }
}

// MARK: Subscriptions

extension Routing {
    func subscriptions(of member: SessionID) -> [SubscriptionID] { subscriptionsByMember[member] ?? [] }
    func subscriptionCount(of member: SessionID) -> Int { subscriptionsByMember[member]?.count ?? 0 }

    /// What `member` receives of a track.
    func subscription(of member: SessionID, to track: TrackID) -> RoomSubscription? {
        for id in subscriptionsByMember[member] ?? [] where subscriptions[id]?.track == track {
            return subscriptions[id]
        }
        return nil
    }

    /// The track that is sent on a subscription.
    func track(of subscription: RoomSubscription) -> RoomTrack? { subscription.track.flatMap { tracks[$0] } }

    /// Whether this encoding of a track is sent to anybody.
    func isSent(_ encoding: TrackID) -> Bool { demand[.encoding(encoding)] != nil }

    /// Whether anybody has a section for a track, but there is no encoding of it that the section can carry.
    func isAwaited(_ track: TrackID) -> Bool { demand[.noEncoding(of: track)] != nil }

    /// In a large room every client's answer queries the demand, so this does not search all subscribers.
    private mutating func demandChanged(from old: Demand?, to new: Demand?) {
        guard old != new else { return }
        if let old, let count = demand[old] { demand[old] = count > 1 ? count - 1 : nil }
        if let new { demand[new, default: 0] += 1 }
    }

    /// Whether one of the member's subscriptions has this SSRC.
    func uses(_ ssrc: UInt32, member: SessionID) -> Bool {
        (subscriptionsByMember[member] ?? []).contains { id in
            subscriptions[id].map { $0.ssrc == ssrc || $0.rtxSSRC == ssrc } ?? false
        }
    }

    mutating func insert(_ subscription: RoomSubscription) {
        subscriptions[subscription.id] = subscription
        subscriptionsByMember[subscription.member, default: []].append(subscription.id)
        if let track = subscription.track { subscribersByTrack[track, default: []].append(subscription.id) }
        demandChanged(from: nil, to: subscription.demand)
    }

    mutating func remove(_ id: SubscriptionID) {
        guard let subscription = subscriptions.removeValue(forKey: id) else { return }
        demandChanged(from: subscription.demand, to: nil)
        if let track = subscription.track { subscribersByTrack[track]?.removeAll { $0 == id } }
        subscriptionsByMember[subscription.member]?.removeAll { $0 == id }
        if subscriptionsByMember[subscription.member]?.isEmpty == true {
            subscriptionsByMember[subscription.member] = nil
        }
    }

    /// From now on another track (nil: none) is sent on the subscription.
    mutating func `switch`(_ id: SubscriptionID, to track: TrackID?) {
        guard let subscription = subscriptions[id] else { return }
        if let old = subscription.track { subscribersByTrack[old]?.removeAll { $0 == id } }
        if let track { subscribersByTrack[track, default: []].append(id) }
        update(id) { $0.track = track }
    }

    /// Does nothing if there is no such subscription.
    mutating func update(_ id: SubscriptionID, _ change: (inout RoomSubscription) -> Void) {
        guard let index = subscriptions.index(forKey: id) else { return }
        let before = subscriptions.values[index].demand
        change(&subscriptions.values[index])
        demandChanged(from: before, to: subscriptions.values[index].demand)
    }
}

/// One track, or one follow-mode section, as one member receives it.
struct RoomSubscription: Sendable {
    let id: SubscriptionID
    let sid: String
    let member: SessionID
    let kind: MediaKind
    let ssrc: UInt32
    let rtxSSRC: UInt32?
    /// What is sent on it now; changed only by ``Routing``, which knows the subscribers of each track.
    fileprivate(set) var track: TrackID?
    /// For a follow-mode section: which of the followed member's tracks of the kind, from 0.
    let slot: Int?
    var connection: String?
    var mid: String?
    /// Paused by request; all video of the member may be paused, too.
    var paused = false
    /// A video that is held for lack of bandwidth.
    var isHeld = false
    var preference = LayerPreference.best
    var display = DisplayPreference()
    var state = SubscriptionInfo.State.pending
    var freezes = ReportedFreezes()
    /// As the worker was last commanded; nil while it does not know the subscription.
    var description: SubscriptionDescription?

    init(
        id: SubscriptionID, sid: String, member: SessionID, kind: MediaKind, ssrc: UInt32, rtxSSRC: UInt32?,
        track: TrackID?, slot: Int?
    ) {
        self.id = id
        self.sid = sid
        self.member = member
        self.kind = kind
        self.ssrc = ssrc
        self.rtxSSRC = rtxSSRC
        self.track = track
        self.slot = slot
    }

    /// On a section of one of the member's connections.
    mutating func bind(to connection: String, mid: String) {
        self.connection = connection
        self.mid = mid
    }

    /// Its member's preferences for it.
    mutating func apply(_ view: TrackView) {
        preference = view.preference
        display = view.display
        paused = view.isPaused
    }

    fileprivate var demand: Routing.Demand? {
        guard let description else { return nil }
        if let encoding = description.track { return .encoding(encoding) }
        return track.map { .noEncoding(of: $0) }
    }

    /// No longer on any section.
    mutating func unbind() {
        connection = nil
        mid = nil
        description = nil
        state = .pending
        isHeld = false
    }
}

extension TrackView {
    /// The preferences for a subscription so far.
    init(_ subscription: RoomSubscription) {
        self.init()
        preference = subscription.preference
        display = subscription.display
        isPaused = subscription.paused
    }
}
