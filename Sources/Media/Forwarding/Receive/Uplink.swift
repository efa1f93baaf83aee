public import MediaControl
public import Primitives
internal import RTP

/// All that one peer sends: its tracks, which SSRC belongs to which, and the feedback that its transport needs.
///
/// ```text
///  clear RTP --> parse header and extensions once --> transport-wide arrival
///                    |                                     (feedback recorder)
///                    v
///        SSRC table --(unknown)--> learn by rid, mid, payload type
///                    |
///                    v
///   RTX undone in place --> sequence, loss, jitter --> payload summary --> history of the layer --> arrivals of the track
/// ```
///
/// Sans-IO: `receiveRTP`, `receiveRTCP`, `advance(to:)`, `nextDeadline`. The deadline may come nearer with every call on
/// the uplink or one of its tracks (`requestKeyframe`), so it is read after them. Not Sendable: one worker owns it.
public final class Uplink {
    /// Most tracks a peer publishes at once; more than any client has m-sections to send.
    public static let maximumTracks = 32

    let peer: PeerID
    let feedbackSSRC: UInt32
    let profile: PeerProfile
    /// The peer's tracks by slot; slots of removed tracks are nil.
    public private(set) var tracks: [PublishedTrack?] = []

    var table = SSRCTable()
    let extensionTable = ExtensionTable()
    var recorder = TransportFeedbackRecorder()
    var rateAdviser = RateAdviser()
    var events: [MediaEvent] = []
    let schedule = FeedbackSchedule()
    /// Packets that no track could be found for, and the like, are counted by the engine through the drop reason; these
    /// two are part of the feedback's state.
    var reports = ReportState()
    var roundTrip = RoundTrip()

    /// The uplink of `peer`, whose reports and feedback carry `feedbackSSRC`.
    public init(peer: PeerID, feedbackSSRC: UInt32, profile: PeerProfile) {
        self.peer = peer
        self.feedbackSSRC = feedbackSSRC
        self.profile = profile
        recorder.setBudget(profile)
    }

    // MARK: Tracks

    /// Adds a track; nil when the peer has too many.
    public func addTrack(_ description: TrackDescription, at now: MonotonicTime) -> PublishedTrack? {
        let free = tracks.firstIndex { $0 == nil }
        guard let slot = free ?? (tracks.count < Self.maximumTracks ? tracks.count : nil) else { return nil }
        let track = PublishedTrack(description: description, at: now)
        track.schedule = schedule
        if slot == tracks.count { tracks.append(track) } else { tracks[slot] = track }
        extensionTable.add(description.extensions)
        bindAnnounced(track, slot: slot)
        return track
    }

    /// Takes renegotiated formats, extensions, encodings or feedback of a track that goes on.
    public func updateTrack(_ description: TrackDescription) {
        guard let slot = slot(of: description.id), let track = tracks[slot] else { return }
        track.update(description)
        extensionTable.removeAll()
        for case let track? in tracks { extensionTable.add(track.description.extensions) }
        bindAnnounced(track, slot: slot)
    }

    /// Forgets a track and its SSRCs.
    public func removeTrack(_ id: TrackID) {
        guard let slot = slot(of: id) else { return }
        tracks[slot] = nil
        table.removeAll { _, binding in Int(binding.track) == slot }
    }

    /// Packets of a muted track are dropped on arrival (C6).
    public func setMuted(_ id: TrackID, _ muted: Bool) {
        guard let slot = slot(of: id) else { return }
        tracks[slot]?.setMuted(muted)
    }

    /// Caps what the publisher should send on the track; told to it by REMB (B13).
    public func setMaximumBitrate(_ id: TrackID, _ bitrate: Bitrate?) {
        guard let slot = slot(of: id) else { return }
        tracks[slot]?.setMaximumBitrate(bitrate)
    }

    func slot(of id: TrackID) -> Int? { tracks.firstIndex { $0?.description.id == id } }

    // MARK: Time and events

    /// When `advance` has something to do.
    public var nextDeadline: MonotonicTime { schedule.deadline }

    /// Whether `takeEvents()` has any.
    public var hasEvents: Bool { !events.isEmpty }

    /// trackStarted, trackSilent, trackResumed and trackDimensions since the last call.
    public func takeEvents() -> [MediaEvent] {
        guard !events.isEmpty else { return [] }
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }

    /// Round trip time to the peer as measured elsewhere on this transport.
    public func setRoundTripTime(_ measured: TimeInterval) { roundTrip.measured(measured) }

    /// Round trip time to the peer; nil before the first measurement.
    public var roundTripTime: TimeInterval? { roundTrip.smoothed }
}

/// The moment at which an uplink has something to send; its tracks bring it nearer.
final class FeedbackSchedule {
    private(set) var deadline = MonotonicTime.distantFuture

    @inline(__always) func wake(at moment: MonotonicTime) { if moment < deadline { deadline = moment } }
    func set(_ moment: MonotonicTime) { deadline = moment }
}

/// A smoothed round trip time (RFC 6298's gain).
struct RoundTrip: Sendable {
    /// Where nothing was measured: not so short that every packet is asked for twice, nor so long that repair is late.
    static let assumed = TimeInterval.milliseconds(100)

    private(set) var smoothed: TimeInterval?

    var value: TimeInterval { smoothed ?? Self.assumed }

    mutating func measured(_ sample: TimeInterval) {
        guard sample >= .zero, sample < .seconds(10) else { return }
        smoothed = smoothed.map { $0 + (sample - $0) / 8 } ?? sample
    }
}
