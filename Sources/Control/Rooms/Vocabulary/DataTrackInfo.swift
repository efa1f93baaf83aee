/// A data track as the roster shows it: frames that a member sends on a data channel to its subscribers.
///
/// Of the supported protocols only LiveKit's has data tracks; members of other protocols neither publish nor receive any.
public struct DataTrackInfo: Sendable, Hashable {
    /// `DTR_…`, unique in the process; empty until the room has set it.
    public var sid = ""
    /// The number that its publisher gave it and that its frames carry: from 1.
    public var handle: UInt16
    /// Unique among its publisher's data tracks, up to 256 characters.
    public var name: String
    /// How its publisher encrypts frames end to end.
    public var encryption = TrackDetails.Encryption.none
    /// How its publisher encodes frames, and by which schema: for subscribers' clients.
    public var frameEncoding: Word?
    public var schema: Schema?

    /// A word for which its protocol has a number, or one of the publisher's own, up to 256 characters.
    public enum Word: Sendable, Hashable {
        case known(UInt32)
        case custom(String)
    }

    /// The schema of the frames' contents.
    public struct Schema: Sendable, Hashable {
        /// Up to 256 characters.
        public var name: String
        /// The language in which it is written.
        public var encoding: Word?

        /// A schema by its name.
        public init(name: String, encoding: Word?) {
            self.name = name
            self.encoding = encoding
        }
    }

    /// A data track that is not published yet.
    public init(handle: UInt16, name: String) {
        self.handle = handle
        self.name = name
    }
}

/// A data track that a member receives.
public struct ReceivedDataTrack: Sendable, Hashable {
    /// The number in its frames, instead of their publisher's.
    public var number: UInt16
    public var track: String
    /// sid and identity of its publisher.
    public var participant: String
    public var identity: String

    /// A data track with the number of its frames.
    public init(number: UInt16, track: String, participant: String, identity: String) {
        self.number = number
        self.track = track
        self.participant = participant
        self.identity = identity
    }
}

/// A member's request about data tracks.
public enum DataTrackRequest: Sendable, Hashable {
    case publish(DataTrackInfo)
    /// By its publisher's own number.
    case unpublish(handle: UInt16)
    /// Subscribes to or unsubscribes from tracks, by their sids. Unknown sids are skipped.
    case setSubscriptions([Subscription])

    /// Whether a member subscribes to a data track.
    public struct Subscription: Sendable, Hashable {
        public var track: String
        public var subscribes: Bool

        /// To the track with this sid.
        public init(track: String, subscribes: Bool) {
            self.track = track
            self.subscribes = subscribes
        }
    }
}
