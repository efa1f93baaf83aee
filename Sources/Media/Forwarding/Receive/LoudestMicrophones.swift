public import MediaControl
public import Primitives

/// Which microphones of a room are forwarded while only the loudest few are. Each of these holds a place until somebody louder needs it, so that a meeting of
/// few, and the pauses of a conversation, know no switching.
///
/// ```text
///  a place is free          whoever sends takes it
///  somebody else speaks     (above the room's threshold) takes the place of the quietest, if that one has fallen silent or is clearly quieter
///  nobody else speaks       everybody keeps their place
/// ```
/// A place is given after 40 ms of voice, within 100 ms of its first packet with packets of up to 60 ms; what was said before is still in the track's history
/// and is sent along (`PublishedTrack.speechStart`). A click of a key is shorter than that.
public struct LoudestMicrophones: ~Copyable {
    /// By how much somebody must be louder than the quietest holder, in dB: the least difference that everybody hears as louder.
    private static let lead = 6
    /// For so long after a place was given, twice the lead takes it: two who are equally loud do not take it from each other with each syllable.
    private static let tenure = TimeInterval.milliseconds(500)
    /// A holder's loudness falls by 1 dB in this time without voice: by `lead` in 120 ms, the gap between words.
    private static let decay: Int64 = 20_000_000

    private struct Holder {
        let tag: Int
        let since: MonotonicTime
        /// The loudest of late, as of `measured`.
        var loudness: Int
        var measured: MonotonicTime

        func loudness(at now: MonotonicTime) -> Int { loudness - Int((now - measured).nanoseconds / decay) }
    }

    /// How many places there are.
    public let limit: Int
    private var holders: [Holder] = []
    /// From this loudness on, 0 to 127, a microphone counts as somebody's who speaks.
    private var voice: UInt8 = 0

    /// `limit` free places.
    public init(limit: Int) {
        self.limit = limit
        holders.reserveCapacity(limit)
    }

    /// Another threshold for whoever wants a place from now on.
    public mutating func configure(_ audio: RoomAudio) { voice = UInt8(clamping: 127 + audio.microphoneThreshold) }

    /// What is to happen with a track's packets.
    public enum Verdict: Equatable {
        /// They are forwarded.
        case forwarded
        /// They are forwarded, and those of the track with this tag no longer.
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

    /// The track with this tag is gone or muted: its place is free.
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
    /// What is quieter than -60 dBov is nobody's voice, so the search for the beginning of a word ends there.
    private static let whisper: UInt8 = 67
    /// What came shortly before the first loud slot belongs to the word: a breath, an `s`, an `f`.
    private static let slotsBeforeVoice = 3
    /// At most 200 ms are sent along: whoever listens hears them as delay, until the player has caught up.
    private static let mostSlotsOfStart = 10

    /// Whether two of the last three slots stand out from the background, and are as loud as `least`.
    func isVoice(from least: UInt8) -> Bool {
        var voiced = 0
        for slot in 0..<3 where isVoiced(slot, from: least) { voiced += 1 }
        return voiced >= 2
    }

    /// The loudest of the last `count` slots.
    func loudest(of count: Int) -> Int { (0..<count).reduce(0) { max($0, Int(loudness($1))) } }

    /// How long ago the voice that is heard now began, with what belongs to its first word; at most 200 ms.
    var timeSinceVoiceBegan: TimeInterval {
        var first = 0
        for slot in 0..<Self.mostSlotsOfStart where isVoiced(slot, from: Self.whisper) { first = slot }
        return .milliseconds(20) * Int64(min(first + 1 + Self.slotsBeforeVoice, Self.mostSlotsOfStart))
    }

    private func isVoiced(_ slot: Int, from least: UInt8) -> Bool {
        loudness(slot) >= max(floor.level + SpeechActivity.stepSize, least)
    }
}
