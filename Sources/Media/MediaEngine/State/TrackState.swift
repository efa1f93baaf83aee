import Forwarding
import MediaControl
import Primitives

/// One published track of the engine.
struct TrackState: ~Copyable {
    let id: TrackID
    let track: PublishedTrack
    /// The same, for the packet path: reading it counts no reference.
    let unmanaged: Unmanaged<PublishedTrack>
    /// Index of its publisher.
    let peer: Int
    let isVideo: Bool
    /// Head of the list of its subscriptions; -1 for none.
    var firstSubscription = -1
    /// What its publisher says about it.
    var traits = TrackTraits()
    /// It has packets of this turn.
    var isDirty = false
    /// What subscribers want of its layers, where it is video.
    var demand = LayerDemand()
    /// The layers that were sent when it was muted, bit by bit.
    var layersBeforeMute = UInt8.max
    /// The last packet of this turn did not end its picture, and several wait for it.
    var isOpen = false

    init(id: TrackID, track: PublishedTrack, peer: Int) {
        self.id = id
        self.track = track
        unmanaged = .passUnretained(track)
        self.peer = peer
        isVideo = track.description.kind == .video
    }
}

/// One subscription of the engine, a member of its track's list and of its peer's list.
struct SubscriptionState: ~Copyable {
    var subscription: Subscription
    /// Index of the subscriber.
    let peer: Int
    /// Index of the track; -1 for none.
    var track = -1
    var nextOfTrack = -1
    var previousOfTrack = -1
    var nextOfPeer = -1
    var previousOfPeer = -1
    /// The next subscription of the peer with packets in this turn.
    var nextPending = -1
    /// Its part of the turn's plan.
    var planStart = 0
    var planEnd = 0
    /// The subscriber is connected: packets can leave.
    var isReady: Bool
    /// The subscriber would see the pictures unturned.
    var lacksOrientation = false
    /// What was decided about it, where it is video.
    var allocation = VideoAllocation()

    /// What lies before `allocation`: all that packets need.
    static let hotBytes = MemoryLayout<SubscriptionState>.size - MemoryLayout<VideoAllocation>.size

    init(_ subscription: consuming Subscription, peer: Int, isReady: Bool) {
        self.subscription = subscription
        self.peer = peer
        self.isReady = isReady
    }
}

/// One room of the engine.
struct RoomState: ~Copyable {
    let id: RoomID
    let speakers: SpeakerDetector
    var peerCount = 0
    /// Index of the peer whose speaker dominates; -1 for none.
    var dominantPeer = -1
    /// Tracks that may have layers which nobody wants any more.
    var fading: [TrackID] = []

    init(id: RoomID) {
        self.id = id
        speakers = SpeakerDetector(room: id)
    }
}
