import Forwarding
import MediaControl
import PeerTransport
import Primitives

/// The engine's rooms, peers, tracks and subscriptions, identified by small numbers, with an index of those numbers by id.
///
/// Only this type adds and removes elements and changes their relations; the elements themselves are changed through their pointers.
struct Tables: ~Copyable {
    private(set) var rooms = Slab<RoomMediaState>(capacity: 16)
    private(set) var peers = Slab<PeerState>(capacity: 16)
    private(set) var tracks = Slab<TrackState>(capacity: 16)
    private(set) var subscriptions = Slab<SubscriptionState>(capacity: 64)
    private(set) var roomIndex = FlatTable<UInt64>()
    private(set) var peerIndex = FlatTable<UInt64>()
    /// The newest peer of each participant.
    private var groupIndex = FlatTable<UInt64>()
    private(set) var trackIndex = FlatTable<UInt64>()
    private(set) var subscriptionIndex = FlatTable<UInt64>()
    /// Packed peer and SSRC -> subscription, for feedback from subscribers.
    private(set) var sendingStreams = FlatTable<UInt64>()

    // MARK: - Rooms and peers

    mutating func addRoom(_ id: RoomID) {
        roomIndex.set(id.rawValue, to: rooms.insert(RoomMediaState(id: id)))
    }

    /// Removes a room, which must have no peers.
    mutating func removeRoom(_ index: Int) {
        roomIndex.remove(rooms[index].pointee.id.rawValue)
        rooms.remove(index)
    }

    mutating func addPeer(_ peer: consuming PeerState) -> Int {
        let id = peer.id, group = peer.group.rawValue, room = peer.room
        let index = peers.insert(peer)
        peerIndex.set(id.rawValue, to: index)
        peers[index].pointee.nextOfGroup = groupIndex[group] ?? -1
        groupIndex.set(group, to: index)
        rooms[room].pointee.peers.insert(index)
        return index
    }

    /// Moves a peer, with its tracks, into another room.
    mutating func movePeer(_ index: Int, to room: Int) {
        rooms[peers[index].pointee.room].pointee.peers.remove(index)
        peers[index].pointee.room = room
        rooms[room].pointee.peers.insert(index)
    }

    /// Removes a peer, whose tracks and subscriptions were removed before.
    mutating func removePeer(_ index: Int) {
        leaveGroup(index)
        rooms[peers[index].pointee.room].pointee.peers.remove(index)
        peerIndex.remove(peers[index].pointee.id.rawValue)
        peers.remove(index)
    }

    private mutating func leaveGroup(_ index: Int) {
        let group = peers[index].pointee.group.rawValue, next = peers[index].pointee.nextOfGroup
        guard var one = groupIndex[group] else { return }
        if one == index {
            if next >= 0 { groupIndex.set(group, to: next) } else { groupIndex.remove(group) }
            return
        }
        while one >= 0, peers[one].pointee.nextOfGroup != index { one = peers[one].pointee.nextOfGroup }
        if one >= 0 { peers[one].pointee.nextOfGroup = next }
    }

    /// Calls `body` with each peer of the participant whose peer has this index, newest first, until it returns something.
    func first<Found>(inGroupOf index: Int, _ body: (Int) -> Found?) -> Found? {
        var one = groupIndex[peers[index].pointee.group.rawValue] ?? -1
        while one >= 0 {
            if let found = body(one) { return found }
            one = peers[one].pointee.nextOfGroup
        }
        return nil
    }

    // MARK: - Tracks

    mutating func addTrack(_ track: PublishedTrack, of peer: Int, id: TrackID) -> Int {
        let index = tracks.insert(TrackState(id: id, track: track, peer: peer))
        track.tag = index
        trackIndex.set(id.rawValue, to: index)
        peers[peer].pointee.trackCount += 1
        return index
    }

    /// Removes a track, which no subscription has any more.
    mutating func removeTrack(_ index: Int) {
        peers[tracks[index].pointee.peer].pointee.trackCount -= 1
        trackIndex.remove(tracks[index].pointee.id.rawValue)
        tracks.remove(index)
    }

    // MARK: - Subscriptions

    /// Adds a subscription without a track to its peer, which must be a receiver.
    mutating func addSubscription(_ subscription: consuming SubscriptionState, _ description: SubscriptionDescription)
        -> Int
    {
        let peer = subscription.peer
        let index = subscriptions.insert(subscription)
        subscriptionIndex.set(description.id.rawValue, to: index)
        sendingStreams.set(StreamKey.of(peer: peer, ssrc: description.ssrc), to: index)
        if let rtx = description.rtxSSRC { sendingStreams.set(StreamKey.of(peer: peer, ssrc: rtx), to: index) }
        peers[peer].pointee.downlink?.pointee.add(index, in: subscriptions.base)
        return index
    }

    /// Removes a subscription that no longer has a track, with its streams.
    mutating func removeSubscription(_ index: Int) {
        let state = subscriptions[index]
        peers[state.pointee.peer].pointee.downlink?.pointee.remove(index, in: subscriptions.base)
        releaseStream(state.pointee.subscription.ssrc, of: state.pointee.peer)
        if let rtx = state.pointee.subscription.rtxSSRC { releaseStream(rtx, of: state.pointee.peer) }
        subscriptionIndex.remove(state.pointee.subscription.id.rawValue)
        subscriptions.remove(index)
    }

    private mutating func releaseStream(_ ssrc: UInt32, of peer: Int) {
        sendingStreams.remove(StreamKey.of(peer: peer, ssrc: ssrc))
        peers[peer].pointee.transport.releaseSendingStream(ssrc: ssrc)
    }

    /// Adds a subscription without a track to those of `track`.
    func attach(_ subscription: Int, to track: Int) {
        subscriptions[subscription].pointee.track = track
        if subscriptions[subscription].pointee.isPinned { tracks[track].pointee.pins += 1 }
        tracks[track].pointee.subscriptions.add(subscription, in: subscriptions.base)
    }

    /// Removes a subscription from those of its track; it must have one.
    func detach(_ subscription: Int) {
        let state = subscriptions[subscription]
        tracks[state.pointee.track].pointee.subscriptions.remove(subscription, in: subscriptions.base)
        if state.pointee.isPinned { tracks[state.pointee.track].pointee.pins -= 1 }
        state.pointee.track = -1
    }

    // MARK: - Lists

    /// The subscriptions of a track, newest first.
    @inline(__always) func subscriptions(ofTrack index: Int) -> SubscriptionChain {
        tracks[index].pointee.subscriptions.chain(in: subscriptions.base)
    }

    /// The subscriptions of a peer, newest first; empty for a publish-only peer.
    @inline(__always) func subscriptions(ofPeer index: Int) -> SubscriptionChain {
        peers[index].pointee.downlink?.pointee.subscriptions(in: subscriptions.base)
            ?? .empty(in: subscriptions.base)
    }

    /// Whether a track has several subscriptions.
    @inline(__always) func isShared(_ track: Int) -> Bool { tracks[track].pointee.subscriptions.count > 1 }

    /// Whether another subscription of the same track is in the same network.
    func sharesNetwork(_ index: Int) -> Bool {
        isShared(subscriptions[index].pointee.track) && group(ofSubscription: index).map { $0.count > 1 } ?? false
    }

    /// The subscriptions of the same track in the same network; nil before the address of the subscription's peer is known.
    func group(ofSubscription index: Int) -> SizeChanges.Group? {
        let state = subscriptions[index]
        guard let own = network(ofPeer: state.pointee.peer) else { return nil }
        var count = 0
        var allocated: Int64 = 0
        for other in subscriptions(ofTrack: state.pointee.track) where network(ofPeer: other.pointee.peer) == own {
            count += 1
            allocated += other.pointee.allocation.record?.layer?.bitrate.bitsPerSecond ?? 0
        }
        return SizeChanges.Group(network: own, count: count, allocated: .bitsPerSecond(allocated))
    }

    private func network(ofPeer index: Int) -> SubscriberNetwork? {
        peers[index].pointee.transport.remoteAddress.map { SubscriberNetwork($0) }
    }
}

/// Peer and SSRC as one word.
enum StreamKey {
    @inline(__always) static func of(peer: Int, ssrc: UInt32) -> UInt64 { UInt64(peer) << 32 | UInt64(ssrc) }
}
