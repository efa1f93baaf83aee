/// Whom a change of a room's rules concerns, and how.
public struct PolicyImpact: Sendable, Hashable {
    /// What happens to one participant. A participant to whom nothing happens is not listed.
    public struct Participant: Sendable, Hashable {
        public var sid: String
        public var identity: String
        /// Its stay ends: it is removed, or the new rules do not let anybody stay as long as it has been here.
        public var leaves = false
        /// The rules end its stay at another time than before, or do so no longer.
        public var changesEnd = false
        /// When they do so from then on, in milliseconds since 1970; nil where nothing changes, and where they do not.
        public var endsAt: Int64?
        /// sids of its tracks that are ended.
        public var endedTracks: [String] = []
        /// sids of its tracks whose cap changes.
        public var cappedTracks: [String] = []
        /// sids of the tracks that it is no longer subscribed to.
        public var endedSubscriptions: [String] = []
        /// sids of the tracks that it is subscribed to from then on.
        public var newSubscriptions: [String] = []
        /// sids of its tracks that are recorded no longer.
        public var endedRecordings: [String] = []
        /// sids of its tracks that are recorded from then on.
        public var newRecordings: [String] = []
        /// What it receives is shared out or bounded in another way.
        public var changesBandwidth = false
    }

    /// In the order in which they joined.
    public var participants: [Participant] = []
    /// How many stay although the rules would not let them in any more.
    public var participantsBeyondLimit = 0
    public var publishersBeyondLimit = 0
}
