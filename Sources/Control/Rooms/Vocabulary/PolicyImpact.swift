/// Which participants a change of a room's rules affects, and how.
public struct PolicyImpact: Sendable, Hashable {
    /// The effects on one participant. Participants that are not affected are not listed.
    public struct Participant: Sendable, Hashable {
        public var sid: String
        public var identity: String
        /// Its stay ends: it is removed, or it has already stayed longer than the new rules allow.
        public var leaves = false
        /// The new rules end its stay at another time, or no longer end it.
        public var changesEnd = false
        /// The time at which they end it, in milliseconds since 1970; nil if this does not change, or if they do not end it.
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
        /// The allocation or the limits of the bandwidth that it receives change.
        public var changesBandwidth = false
    }

    /// In the order in which they joined.
    public var participants: [Participant] = []
    /// How many participants stay although the new rules would no longer admit them.
    public var participantsBeyondLimit = 0
    public var publishersBeyondLimit = 0
}
