public import MediaControl
public import Primitives

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
/// Sans-IO: `receiveRTP`, `receiveRTCP`, `advance(to:)`, `nextDeadline`. Not Sendable: one worker owns it.
public final class Uplink {
    public init(peer: PeerID, feedbackSSRC: UInt32, profile: PeerProfile) {}

    /// Adds a track; nil when the peer has too many.
    public func addTrack(_ description: TrackDescription, at now: MonotonicTime) -> PublishedTrack? { nil }
    public func updateTrack(_ description: TrackDescription) {}
    public func removeTrack(_ id: TrackID) {}
    public func setMuted(_ id: TrackID, _ muted: Bool) {}
    public func setMaximumBitrate(_ id: TrackID, _ bitrate: Bitrate?) {}

    /// The peer's tracks by slot; slots of removed tracks are nil.
    public private(set) var tracks: [PublishedTrack?] = []

    /// Takes one clear RTP packet of `length` bytes at the start of `packet`, which may be changed in place. `track` is
    /// set to the track it belongs to, for results other than `.dropped`.
    public func receiveRTP(
        _ packet: UnsafeMutableRawBufferPointer, length: Int, at now: MonotonicTime, track: inout PublishedTrack?
    ) -> IngestResult { .dropped(.rtpMalformed) }

    /// Takes one clear compound: sender reports, goodbyes and extended reports are used here, the rest is the downlink's.
    public func receiveRTCP(_ packet: RawSpan, at now: MonotonicTime) {}

    /// Writes RTCP that is due as one compound to `feedback`; its length, 0 when nothing is due. Call until 0.
    public func advance(to now: MonotonicTime, feedback: UnsafeMutableRawBufferPointer) -> Int { 0 }

    /// When `advance` has something to do.
    public private(set) var nextDeadline = MonotonicTime.distantFuture

    /// Whether `takeEvents()` has any.
    public var hasEvents: Bool { false }
    /// trackStarted, trackSilent, trackResumed and trackDimensions since the last call.
    public func takeEvents() -> [MediaEvent] { [] }

    /// Round trip time to the publisher as measured elsewhere on this transport.
    public func setRoundTripTime(_ roundTrip: TimeInterval) {}
}
