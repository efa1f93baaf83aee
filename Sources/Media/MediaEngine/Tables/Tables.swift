import Forwarding
import MediaControl
import PeerTransport
import Primitives

/// The engine's rooms, peers, tracks and subscriptions, identified by small numbers, with an index of those numbers by id.
struct Tables: ~Copyable {
    var rooms = Slab<RoomState>(capacity: 16)
    var peers = Slab<PeerState>(capacity: 16)
    var tracks = Slab<TrackState>(capacity: 16)
    var subscriptions = Slab<SubscriptionState>(capacity: 64)
    var roomIndex = FlatTable<UInt64>()
    var peerIndex = FlatTable<UInt64>()
    var trackIndex = FlatTable<UInt64>()
    var subscriptionIndex = FlatTable<UInt64>()
    /// Packed peer and SSRC -> subscription, for feedback from subscribers.
    var sendingStreams = FlatTable<UInt64>()

    /// The subscriptions of a track, newest first.
    @inline(__always) func subscriptions(ofTrack index: Int) -> SubscriptionChain {
        SubscriptionChain(.ofTrack, from: tracks[index].pointee.firstSubscription, in: subscriptions.base)
    }

    /// Whether a track has several subscriptions.
    func isShared(_ track: Int) -> Bool {
        let first = tracks[track].pointee.firstSubscription
        return first >= 0 && subscriptions[first].pointee.nextOfTrack >= 0
    }

    /// The network of a subscription's peer, and how many subscriptions of its track are in it; nil and zero before its address is known.
    func network(ofSubscription index: Int) -> (network: SubscriberNetwork?, count: Int) {
        let state = subscriptions[index]
        guard let own = network(ofPeer: state.pointee.peer) else { return (nil, 0) }
        var count = 0
        for other in subscriptions(ofTrack: state.pointee.track) where network(ofPeer: other.pointee.peer) == own {
            count += 1
        }
        return (own, count)
    }

    private func network(ofPeer index: Int) -> SubscriberNetwork? {
        peers[index].pointee.transport.remoteAddress.map { SubscriberNetwork($0) }
    }

    /// The subscriptions of a peer, newest first; empty for a publish-only peer.
    @inline(__always) func subscriptions(ofPeer index: Int) -> SubscriptionChain {
        peers[index].pointee.downlink?.pointee.subscriptions(in: subscriptions.base)
            ?? SubscriptionChain(.ofPeer, from: -1, in: subscriptions.base)
    }
}
