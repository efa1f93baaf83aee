public import MediaControl
public import Primitives
internal import RTP

/// All that one peer sends: its tracks, the SSRC bindings, and the feedback that its transport needs.
///
/// ```text
///  clear RTP --> parse header and extensions once --> transport-wide arrival
///                    |                                     (feedback recorder)
///                    v
///        SSRC table --(unknown)--> learn by rid, mid, payload type
///                    |
///                    v
///   RTX unwrapped in place --> sequence, loss, jitter --> payload summary --> history of the layer --> arrivals of the track
/// ```
///
/// Sans-IO: `receiveRTP`, `receiveRTCP`, `advance(to:)`, `nextDeadline`. Every call on the uplink or one of its tracks
/// (`requestKeyframe`) may bring the deadline forward, so read it afterwards. Not Sendable: one worker owns it.
public final class Uplink {
    let peer: PeerID
    let feedbackSSRC: UInt32
    let profile: PeerProfile
    let extensionTable = ExtensionTable()
    let schedule = FeedbackSchedule()
    let state: UnsafeMutablePointer<UplinkState>

    /// The uplink of `peer`, whose reports and feedback carry `feedbackSSRC`.
    public init(peer: PeerID, feedbackSSRC: UInt32, profile: PeerProfile) {
        self.peer = peer
        self.feedbackSSRC = feedbackSSRC
        self.profile = profile
        state = .allocate(capacity: 1)
        state.initialize(to: UplinkState())
        state.pointee.recorder.setBudget(profile)
    }

    deinit {
        state.deinitialize(count: 1)
        state.deallocate()
    }

    /// The peer's tracks by slot; slots of removed tracks are nil.
    public var tracks: [PublishedTrack?] { _read { yield state.pointee.tracks } }

    // MARK: Tracks

    /// Adds a track; nil when the peer has too many.
    public func addTrack(_ description: TrackDescription, at now: MonotonicTime) -> PublishedTrack? {
        let free = tracks.firstIndex { $0 == nil }
        guard let slot = free ?? (tracks.count < MediaLimits.tracksPerParticipant ? tracks.count : nil) else {
            return nil
        }
        let track = PublishedTrack(description: description, at: now)
        track.state.pointee.schedule = schedule
        if slot == tracks.count { state.pointee.tracks.append(track) } else { state.pointee.tracks[slot] = track }
        extensionTable.add(description.extensions)
        bindAnnounced(track, slot: slot)
        return track
    }

    /// Applies renegotiated formats, extensions, encodings or feedback of an existing track.
    public func updateTrack(_ description: TrackDescription) {
        guard let slot = slot(of: description.id), let track = tracks[slot] else { return }
        track.update(description)
        extensionTable.removeAll()
        for case let track? in tracks { extensionTable.add(track.description.extensions) }
        bindAnnounced(track, slot: slot)
    }

    /// Removes a track and its SSRCs.
    public func removeTrack(_ id: TrackID) {
        guard let slot = slot(of: id) else { return }
        state.pointee.tracks[slot] = nil
        var gone: [SourceChange] = []
        state.pointee.table.removeAll { ssrc, binding in
            guard Int(binding.track) == slot else { return false }
            gone.append(SourceChange(ssrc: ssrc, isReceived: false))
            return true
        }
        state.pointee.sourceChanges += gone
    }

    /// Packets of a muted track are dropped on arrival.
    public func setMuted(_ id: TrackID, _ muted: Bool) {
        guard let slot = slot(of: id) else { return }
        tracks[slot]?.setMuted(muted)
    }

    /// Caps what the publisher should send on the track; signalled by REMB.
    public func setMaximumBitrate(_ id: TrackID, _ bitrate: Bitrate?) {
        guard let slot = slot(of: id) else { return }
        tracks[slot]?.setMaximumBitrate(bitrate)
    }

    func slot(of id: TrackID) -> Int? { tracks.firstIndex { $0?.description.id == id } }

    // MARK: Time and events

    /// When `advance` has something to do.
    public var nextDeadline: MonotonicTime { schedule.deadline }

    /// Whether `takeEvents()` has any.
    public var hasEvents: Bool { !state.pointee.events.isEmpty }

    /// trackStarted, trackSilent, trackResumed and trackDimensions since the last call.
    public func takeEvents() -> [MediaEvent] {
        guard !state.pointee.events.isEmpty else { return [] }
        defer { state.pointee.events.removeAll(keepingCapacity: true) }
        return state.pointee.events
    }

    /// Whether `takeSourceChanges()` has any.
    @inline(__always) public var hasSourceChanges: Bool { !state.pointee.sourceChanges.isEmpty }

    /// The SSRCs whose binding has changed since the last call, in order; for the transport, whose streams are bounded.
    public func takeSourceChanges() -> [SourceChange] {
        defer { state.pointee.sourceChanges.removeAll() }
        return state.pointee.sourceChanges
    }

    /// Sets the round trip time to the peer as measured elsewhere on this transport.
    public func setRoundTripTime(_ measured: TimeInterval) { state.pointee.roundTrip.measured(measured) }

    /// Round trip time to the peer; nil before the first measurement.
    public var roundTripTime: TimeInterval? { state.pointee.roundTrip.smoothed }
}

/// The state of an uplink, behind a pointer for the same reason as `PublishedTrackState`.
struct UplinkState: ~Copyable {
    var tracks: [PublishedTrack?] = []
    var table = SSRCTable()
    var recorder = TransportFeedbackRecorder()
    var rateAdviser = RateAdviser()
    var reports = ReportState()
    var roundTrip = RoundTrip()
    var events: [MediaEvent] = []
    var sourceChanges: [SourceChange] = []
}

/// An SSRC that is now received, or no longer.
public struct SourceChange: Hashable, Sendable {
    public var ssrc: UInt32
    public var isReceived: Bool
}

/// The moment at which an uplink has something to send; its tracks bring it forward.
final class FeedbackSchedule {
    private let storage: UnsafeMutablePointer<MonotonicTime>

    init() {
        storage = .allocate(capacity: 1)
        storage.initialize(to: .distantFuture)
    }

    deinit { storage.deallocate() }

    var deadline: MonotonicTime { storage.pointee }

    @inline(__always) func wake(at moment: MonotonicTime) {
        if moment < storage.pointee { storage.pointee = moment }
    }

    func set(_ moment: MonotonicTime) { storage.pointee = moment }
}
