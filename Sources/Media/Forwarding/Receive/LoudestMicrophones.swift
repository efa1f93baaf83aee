public import MediaControl
public import Primitives

/// Which microphones of a room are forwarded when only the loudest few are. Each of these holds a place until somebody louder needs it, so that nothing is
/// switched in small meetings and in the pauses of a conversation.
///
/// ```text
///  a place is free          whoever sends takes it
///  somebody else speaks     (above the room's threshold) takes the place of the quietest, if that one has fallen silent or is clearly quieter
///  nobody else speaks       everybody keeps their place
/// ```
/// A place is given after 40 ms of voice, within 100 ms of its first packet with packets of up to 60 ms; the audio from before is still in the track's history
/// and is sent along (`PublishedTrack.speechStart`). A key click is shorter than that.
public struct LoudestMicrophones: ~Copyable {
    /// By how much somebody must be louder than the quietest holder, in dB: the smallest difference that everybody hears.
    private static let lead = 6
    /// For this long after a place was given, taking it requires twice the lead, so that two equally loud speakers do not take it from each other with every
    /// syllable.
    private static let tenure = TimeSpan.milliseconds(500)
    /// A holder's loudness falls by 1 dB in this time without voice: by `lead` in 120 ms, the gap between words.
    private static let decay: Int64 = 20_000_000

    private struct Holder {
        let tag: Int
        let since: MonotonicTime
        /// The recent loudness, as of `measured`.
        var loudness: Int
        var measured: MonotonicTime

        func loudness(at now: MonotonicTime) -> Int { loudness - Int((now - measured).nanoseconds / decay) }
    }

    /// How many places there are.
    public let limit: Int
    private var holders: [Holder] = []
    /// From this loudness on, 0 to 127, somebody counts as speaking.
    private var voice: UInt8 = 0

    /// `limit` free places.
    public init(limit: Int) {
        self.limit = limit
        holders.reserveCapacity(limit)
    }

    /// Sets the threshold for microphones that compete for a place from now on.
    public mutating func configure(_ audio: RoomAudio) { voice = UInt8(clamping: 127 + audio.microphoneThreshold) }

    /// What to do with a track's packets.
    public enum Verdict: Equatable {
        /// They are forwarded.
        case forwarded
        /// They are forwarded, and the packets of the track with this tag no longer are.
        case forwardedInsteadOf(Int)
        case withheld
    }

    /// Judges a track that has new packets.
    public mutating func judge(_ track: PublishedTrack, at now: MonotonicTime) -> Verdict {
        let tag = track.tag
        if let index = holders.firstIndex(where: { $0.tag == tag }) {
            let newest = Int(track.levels.loudness(0))
            if newest >= holders[index].loudness(at: now) {
                holders[index].loudness = newest
                holders[index].measured = now
            }
            return .forwarded
        }
        let holder = Holder(tag: tag, since: now, loudness: track.levels.loudest(of: 3), measured: now)
        guard holders.count >= limit else {
            holders.append(holder)
            return .forwarded
        }
        guard track.levels.isVoice(from: voice), let quietest = indexOfQuietest(at: now) else { return .withheld }
        let other = holders[quietest]
        let lead = holder.loudness - other.loudness(at: now)
        guard lead >= (now - other.since < Self.tenure ? 2 * Self.lead : Self.lead) else { return .withheld }
        holders[quietest] = holder
        return .forwardedInsteadOf(other.tag)
    }

    /// The track with this tag was removed or muted: its place is free.
    public mutating func release(_ tag: Int) { holders.removeAll { $0.tag == tag } }

    private func indexOfQuietest(at now: MonotonicTime) -> Int? {
        var quietest: Int?
        var least = Int.max
        for index in holders.indices {
            let loudness = holders[index].loudness(at: now)
            if loudness < least { (quietest, least) = (index, loudness) }
        }
        return quietest
    }
}

extension AudioLevelWindow {
    /// Audio quieter than -60 dBov is no voice, so the search for the beginning of a word ends there.
    private static let whisper: UInt8 = 67
    /// The slots just before the first loud one belong to the word: a breath, an `s`, an `f`.
    private static let slotsBeforeVoice = 3
    /// At most 200 ms are sent along: listeners hear them as delay, until the player has caught up.
    private static let mostSlotsOfStart = 10

    /// Whether two of the last three slots stand out from the background, and are as loud as `least`.
    func isVoice(from least: UInt8) -> Bool {
        var voiced = 0
        for slot in 0..<3 where isVoiced(slot, from: least) { voiced += 1 }
        return voiced >= 2
    }

    /// The loudest of the last `count` slots.
    func loudest(of count: Int) -> Int { (0..<count).reduce(0) { max($0, Int(loudness($1))) } }

    /// How long ago the current speech began, including the beginning of its first word; at most 200 ms.
    var timeSinceVoiceBegan: TimeSpan {
        var first = 0
        for slot in 0..<Self.mostSlotsOfStart where isVoiced(slot, from: Self.whisper) { first = slot }
        return .milliseconds(20) * Int64(min(first + 1 + Self.slotsBeforeVoice, Self.mostSlotsOfStart))
    }

    private func isVoiced(_ slot: Int, from least: UInt8) -> Bool {
        loudness(slot) >= max(floor.level + SpeechActivity.stepSize, least)
    }
}
