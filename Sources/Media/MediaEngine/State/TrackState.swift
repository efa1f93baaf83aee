import Forwarding
import MediaControl
import Primitives

/// One published track of the engine.
struct TrackState: ~Copyable {
    let id: TrackID
    let track: PublishedTrack
    /// The same, for the packet path: access without reference counting.
    let unmanaged: Unmanaged<PublishedTrack>
    /// Index of its publisher.
    let peer: Int
    let isVideo: Bool
    var subscriptions = SubscriptionList(of: .track)
    /// The publisher's preferences for it.
    var traits = TrackTraits()
    /// It has packets in this turn.
    var isDirty = false
    /// The subscribers' demand for its layers, for video.
    var demand = LayerDemand()
    /// When its subscribers may change to another size, for video.
    var sizeChanges = SizeChanges()
    /// Bitmap of the layers that were sent when it was muted.
    var layersBeforeMute = UInt8.max
    /// Only the loudest microphones of the room are forwarded, and this is none of them.
    var isWithheld = false
    /// It is forwarded however quiet it is.
    var isAlwaysForwarded = false
    /// How many of its subscribers have pinned it.
    var pins = 0
    /// The last packet of this turn did not end its frame, and several subscribers wait for it.
    var isOpen = false
    /// Number of its recorded stream; -1: it is not recorded.
    var recording = -1

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
    var inTrack = SubscriptionLinks()
    var inPeer = SubscriptionLinks()
    /// The next subscription of the peer with packets in this turn.
    var nextPending = -1
    /// Its part of the turn's plan.
    var planStart = 0
    var planEnd = 0
    /// The subscriber is connected: packets can leave.
    var isReady: Bool
    /// The subscriber would see the video without its rotation.
    var lacksOrientation = false
    /// The decision about it, for video.
    var allocation = VideoAllocation()

    /// The subscriber has pinned the track.
    var isPinned: Bool { allocation.display.isPinned }

    /// Everything before `allocation`: all that packets need.
    static let hotBytes = MemoryLayout<SubscriptionState>.size - MemoryLayout<VideoAllocation>.size

    init(_ subscription: consuming Subscription, peer: Int, isReady: Bool) {
        self.subscription = subscription
        self.peer = peer
        self.isReady = isReady
    }

    /// Prefetches what planning it touches beyond its own memory, and the memory of the next subscription of the track.
    @inline(__always) mutating func prefetch(from base: UnsafeMutablePointer<SubscriptionState>) {
        if inTrack.next >= 0 { Prefetch.lines(base + inTrack.next, Self.hotBytes) }
        subscription.prefetch()
    }
}

/// One room of the engine.
struct RoomMediaState: ~Copyable {
    let id: RoomID
    let speakers: SpeakerDetector
    var peers = RoomPeers()
    /// Index of the peer of the dominant speaker; -1 for none.
    var dominantPeer = -1
    var fading = FadingTracks()
    /// Which microphones are forwarded; nil: all.
    var loudest: LoudestMicrophones?

    init(id: RoomID) {
        self.id = id
        speakers = SpeakerDetector(room: id)
    }
}
