public import MediaControl
public import Primitives

/// The speakers of one room: the list of active speakers, and the dominant one by the method of Volfin and Cohen
/// (`SpeechActivity`), which does not follow coughs, key strokes and short remarks.
///
/// It evaluates the tracks' level windows every 300 ms and does nothing per packet. Not Sendable: one worker owns it.
public final class SpeakerDetector {
    /// The decision interval of implementations of the paper.
    static let interval = TimeSpan.milliseconds(300)
    /// Used while no one has sent audio for a while.
    static let idleInterval = TimeSpan.seconds(1)
    /// How much more active than the dominant speaker another must be, in each interval (the paper's three thresholds).
    static let requiredLead = SpeechActivity(immediate: 3, medium: 2, long: 0)
    /// After this long without speech a room has no dominant speaker.
    static let forgetting = TimeSpan.seconds(30)
    private struct Speaker {
        let track: PublishedTrack
        var smoothed = 0.0
        var isListed = false
        var lastActive = MonotonicTime.zero
    }

    private let room: RoomID
    /// How many are listed, and from which level on.
    private var audio = RoomAudio()
    private var speakers: [Speaker] = []
    /// The dominant speaker's track.
    public private(set) var dominant: TrackID?
    private var dominantLastActive = MonotonicTime.zero
    private var listed: [SpeakerLevel] = []
    private var events: [MediaEvent] = []
    /// When `advance` has something to do.
    public private(set) var nextDeadline = MonotonicTime.distantFuture

    /// A detector of `room` without any tracks.
    public init(room: RoomID) { self.room = room }

    /// Uses other rules for the list from the next decision on.
    public func configure(_ audio: RoomAudio) { self.audio = audio }

    /// Adds a track. Only audio tracks have levels.
    public func add(_ track: PublishedTrack, at now: MonotonicTime) {
        guard track.description.kind == .audio, track.description.source != .screenAudio else { return }
        speakers.append(Speaker(track: track))
        nextDeadline = min(nextDeadline, now + Self.interval)
    }

    /// Removes a track.
    public func remove(_ id: TrackID) {
        speakers.removeAll { $0.track.description.id == id }
        if dominant == id { setDominant(nil) }
        if listed.contains(where: { $0.track == id }) {
            listed.removeAll { $0.track == id }
            events.append(.speakersChanged(room, listed))
        }
        if speakers.isEmpty { nextDeadline = .distantFuture }
    }

    /// The smoothed loudness of a track, 0 to 127.
    public func loudness(of id: TrackID) -> Int {
        speakers.first { $0.track.description.id == id }.map { Int($0.smoothed) } ?? 0
    }

    /// Whether `consumeEvents()` has any.
    public var hasEvents: Bool { !events.isEmpty }

    /// Removes and returns speakersChanged and dominantSpeakerChanged since the last call.
    public func consumeEvents() -> [MediaEvent] {
        guard !events.isEmpty else { return [] }
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }

    /// Makes a new decision when one is due.
    public func advance(to now: MonotonicTime) {
        guard now >= nextDeadline else { return }
        var isAnybodyHeard = false
        for index in speakers.indices {
            speakers[index].track.levels.settle(at: now)
            if now - speakers[index].track.levels.lastArrival < .seconds(2) { isAnybodyHeard = true }
        }
        decideDominant(at: now)
        updateList(at: now)
        nextDeadline = speakers.isEmpty ? .distantFuture : now + (isAnybodyHeard ? Self.interval : Self.idleInterval)
    }

    private func decideDominant(at now: MonotonicTime) {
        let incumbent = speakers.first { $0.track.description.id == dominant }
        let reference = incumbent.map { SpeechActivity($0.track.levels) } ?? .silence
        if reference.medium > SpeechActivity.least { dominantLastActive = now }
        var best: TrackID?
        var bestLead = Self.requiredLead.medium
        for speaker in speakers where speaker.track.description.id != dominant && speaker.track.levels.hasLevels {
            let lead = SpeechActivity(speaker.track.levels).relative(to: reference)
            guard lead.immediate > Self.requiredLead.immediate, lead.medium > bestLead,
                lead.long > Self.requiredLead.long
            else { continue }
            best = speaker.track.description.id
            bestLead = lead.medium
        }
        if let best {
            setDominant(best)
            dominantLastActive = now
        } else if dominant != nil, now - dominantLastActive >= Self.forgetting {
            setDominant(nil)
        }
    }

    private func setDominant(_ track: TrackID?) {
        guard track != dominant else { return }
        dominant = track
        events.append(.dominantSpeakerChanged(room, track))
    }
}

// MARK: - The list of active speakers

extension SpeakerDetector {
    /// Listed once 40 % of the last half second were voice; unlisted after a whole second without.
    private static let slotsToEnter = 10
    private static let leaving = TimeSpan.seconds(1)
    /// Loudness is reported in steps, so that a list whose members stay does not change with every syllable.
    private static let step = 16

    private func updateList(at now: MonotonicTime) {
        for index in speakers.indices { update(&speakers[index], at: now) }
        var list = speakers.filter(\.isListed).map { speaker in
            SpeakerLevel(
                track: speaker.track.description.id,
                loudness: min(127, (Int(speaker.smoothed) / Self.step + 1) * Self.step - 1))
        }
        list.sort { ($1.loudness, $0.track) < ($0.loudness, $1.track) }
        if list.count > audio.maximumSpeakers { list.removeLast(list.count - audio.maximumSpeakers) }
        guard list != listed else { return }
        listed = list
        events.append(.speakersChanged(room, list))
    }

    private func update(_ speaker: inout Speaker, at now: MonotonicTime) {
        let window = speaker.track.levels
        // A mute has cleared them: its speaker counts as silent.
        guard window.hasLevels else {
            (speaker.isListed, speaker.smoothed) = (false, 0)
            return
        }
        let voice = UInt8(clamping: 127 + audio.voiceThreshold)
        var active = 0, sum = 0
        for slot in 0..<25 where window.loudness(slot) >= voice {
            active += 1
            sum += Int(window.loudness(slot))
        }
        let level = active == 0 ? 0 : Double(sum) / Double(active)
        if active > 0 {
            speaker.smoothed += (level - speaker.smoothed) * (speaker.smoothed == 0 ? 1 : 0.3)
            if active >= Self.slotsToEnter { speaker.lastActive = now }
        } else {
            speaker.smoothed *= 0.5
        }
        if active >= Self.slotsToEnter {
            speaker.isListed = true
        } else if now - speaker.lastActive >= Self.leaving {
            speaker.isListed = false
        }
    }
}
