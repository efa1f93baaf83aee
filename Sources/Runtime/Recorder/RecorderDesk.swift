import MediaControl
import MediaWorkers
import NetworkIO
import Primitives
import Recording
import Rooms

/// The state of the recorder's thread.
struct RecorderDesk {
    private let books: RecordingBooks
    private let news: AsyncStream<RecorderThread.News>.Continuation
    private let finisher: FileFinisher?
    /// The time in milliseconds since 1970.
    private let wallClock: () -> Int64
    private var tracks: [UInt64: RecordedTrack] = [:]
    /// The index of each track in its summary.
    private var places: [UInt64: Int] = [:]
    /// Recordings that get no more tracks.
    private var ending: Set<String> = []
    private var summaries: [String: RecordingSummary] = [:]
    /// For each recording, wall clock minus monotonic clock at its start, in milliseconds. All of its tracks are aligned by this: the wall clock may be set
    /// meanwhile.
    private var clockOffsets: [String: Int64] = [:]
    private var parts = RecordingParts()
    private var content: [UInt8] = []
    private var lag = TimeSpan.zero
    private var nextLook = MonotonicTime.zero

    /// If the wall clock has moved by more milliseconds than this, it was set. Retention need not be exact to the second.
    private static let clockTolerance: Int64 = 1_000
    /// How often the disk is checked.
    static let lookInterval = TimeSpan.seconds(1)

    init(
        books: RecordingBooks, finisher: FileFinisher?, news: AsyncStream<RecorderThread.News>.Continuation,
        wallClock: @escaping () -> Int64 = MonotonicClock.wallMilliseconds
    ) {
        self.books = books
        self.wallClock = wallClock
        self.finisher = finisher
        self.news = news
    }

    var isIdle: Bool { tracks.isEmpty && summaries.isEmpty }

    // MARK: - Orders

    /// False: stop.
    mutating func carryOut(_ order: RecorderThread.Order, at now: MonotonicTime) -> Bool {
        switch order {
        case .begin(let summary): begin(summary, at: now)
        case .track(let recording, let stream, let track, let info):
            guard let summary = summaries[recording] else {
                books.places.release(stream.rawValue)
                break
            }
            let part = key(recording, RecordingSummary.Track(info)).map { parts.part(of: $0, at: now) }
            tracks[stream.rawValue] = RecordedTrack(
                info, track: track, recording: summary, folder: books.folder(of: summary),
                clockOffset: clockOffsets[recording] ?? 0, movesIndexes: movesIndexes, part: part,
                encode: books.encodeLine)
            note(stream.rawValue)
        case .refused(let recording, let info, let reason):
            var track = RecordingSummary.Track(info)
            (track.fault, track.ended) = (reason.rawValue, true)
            summaries[recording]?.tracks.append(track)
            save(recording)
        case .end(let recording):
            ending.insert(recording)
            endIfDone(recording, at: now)
        case .stop: return false
        }
        return true
    }

    private mutating func begin(_ summary: RecordingSummary, at now: MonotonicTime) {
        summaries[summary.sid] = summary
        clockOffsets[summary.sid] = wallClock() - now.milliseconds
        do throws(SystemError) {
            try books.makeFolder(of: summary)
        } catch {
            report(summary, RecordingEvent(.failed, recording: summary.sid, reason: "disk_error"))
        }
        save(summary.sid)
    }

    // MARK: - Records

    /// Reads from each ring the bytes that wait in it.
    mutating func read(_ rings: [RecordRing], upTo waiting: [Int]) {
        books.sawQueue(waiting.reduce(0, +))
        for (ring, byteCount) in zip(rings, waiting) { read(ring, upTo: byteCount) }
    }

    /// Reads the first `byteCount` bytes; later ones wait for the next round, so that orders get their turn.
    private mutating func read(_ ring: RecordRing, upTo byteCount: Int) {
        var left = byteCount
        guard left > 0 else { return }
        let now = MonotonicClock.now()
        while left > 0, let header = ring.pop(into: &content) {
            left -= header.recordLength
            lag = max(lag, now - header.arrival)
            guard let track = tracks[header.stream] else { continue }
            if header.kind == .ended {
                finish(header.stream, at: now)
            } else {
                handle(track.receive(header, content, at: now), of: track, stream: header.stream)
            }
        }
    }

    mutating func advance(to now: MonotonicTime) {
        for (stream, track) in tracks {
            handle(track.advance(to: now), of: track, stream: stream)
            books.wrote(bytes: track.consumeBytesWritten())
        }
        guard now >= nextLook else { return }
        nextLook = now + Self.lookInterval
        showProgress()
        advanceParts(to: now)
        books.sawLag(lag, recordings: summaries.count)
        lag = .zero
        guard !books.hasRoom() else { return }
        for (stream, track) in tracks {
            handle(track.fail("disk_full", at: now), of: track, stream: stream)
            if let summary = summaries[track.recording] {
                news.yield(
                    RecorderThread.News(
                        room: summary.room, roomSID: summary.roomSid, gaveUp: SubscriptionID(stream)))
            }
            remove(stream, at: now)
        }
    }

    private mutating func finish(_ stream: UInt64, at now: MonotonicTime) {
        guard let track = tracks[stream] else { return }
        handle(track.finish(at: now), of: track, stream: stream)
        remove(stream, at: now)
    }

    private mutating func remove(_ stream: UInt64, at now: MonotonicTime) {
        guard let track = tracks[stream] else { return }
        note(stream)
        tracks[stream] = nil
        books.places.release(stream)
        places[stream] = nil
        books.wrote(bytes: track.consumeBytesWritten())
        endIfDone(track.recording, at: now)
    }

    /// The process ends: everything is finished.
    mutating func finishAll() {
        let now = MonotonicClock.now()
        for stream in tracks.keys { finish(stream, at: now) }
        for recording in summaries.keys {
            ending.insert(recording)
            endIfDone(recording, at: now)
        }
    }

    private mutating func handle(_ happened: [RecordedTrack.News], of track: RecordedTrack, stream: UInt64) {
        for item in happened {
            guard let summary = summaries[track.recording] else { continue }
            switch item {
            case .gap(let reason, let milliseconds):
                books.countGap()
                report(
                    summary,
                    RecordingEvent(
                        .gap, recording: summary.sid, track: track.summary.sid, reason: reason.rawValue,
                        milliseconds: milliseconds))
            case .requestKeyframe:
                news.yield(
                    RecorderThread.News(room: summary.room, roomSID: summary.roomSid, keyframe: track.track))
            case .failed(let reason):
                books.countFailure()
                report(
                    summary,
                    RecordingEvent(.failed, recording: summary.sid, track: track.summary.sid, reason: reason))
                note(stream)
            case .logRefused: books.logRefused(track.summary.sid, of: summary)
            case .began:
                followParts(track)
                note(stream)
            case .finished:
                note(stream)
                books.countFinished(1)
                finisher?.post(summary.sid)
            }
        }
    }

    private var movesIndexes: Bool { finisher != nil && books.movesIndexes }

    // MARK: - Parts

    private func key(_ recording: String, _ track: RecordingSummary.Track) -> RecordingParts.Key? {
        summaries[recording]?.group(of: track).map { RecordingParts.Key(recording: recording, group: $0) }
    }

    /// Tracks that are joined, in the order in which they began.
    private var members: [RecordingParts.Key: [RecordedTrack]] {
        var members: [RecordingParts.Key: [RecordedTrack]] = [:]
        for (_, track) in tracks.sorted(by: { $0.key < $1.key }) {
            if let key = key(track.recording, track.summary) { members[key, default: []].append(track) }
        }
        return members
    }

    /// A track has continued in another file. For one participant, a video with another codec or rotation begins another part: players support one per file.
    private mutating func followParts(_ track: RecordedTrack) {
        let files = track.summary.files.suffix(2)
        guard files.count == 2, let former = files.first, let file = files.last, former.part == file.part,
            let key = key(track.recording, track.summary)
        else { return }
        let isOther = key.group.participant != nil && (former.codec != file.codec || former.rotation != file.rotation)
        parts.opened(track, isOtherFormat: isOther, key, members[key] ?? [], at: MonotonicClock.now())
    }

    /// Begins parts that are due, and requests the joining of complete ones.
    private mutating func advanceParts(to now: MonotonicTime) {
        let known = summaries
        parts.advance(members, to: now) { key, part in
            known[key.recording]?.files(of: key.group, part: part).reduce(0) { $0 + ($1.file.bytes ?? 0) } ?? 0
        }
        for (recording, var summary) in summaries where summary.joinsTracks {
            let isNew = summary.addJoins { group, part in
                part < parts.current(RecordingParts.Key(recording: recording, group: group))
            }
            guard isNew else { continue }
            summaries[recording] = summary
            save(recording)
            finisher?.post(recording)
        }
    }

    // MARK: - Summaries

    /// Updates what the API shows of recordings in progress, which is at most a second old; writes to the disk what a crash would lose.
    private mutating func showProgress() {
        var changed: Set<String> = []
        for (stream, track) in tracks {
            let before = places[stream].flatMap { summaries[track.recording]?.tracks[$0] }
            if let before, !before.differsOnlyInCounts(from: track.summary) { changed.insert(track.recording) }
            enter(stream)
        }
        for (recording, summary) in summaries {
            if changed.contains(recording) { books.save(summary) } else { books.show(summary) }
        }
    }

    /// Writes the state of a track to its summary.
    private mutating func note(_ stream: UInt64) {
        guard let track = tracks[stream] else { return }
        enter(stream)
        save(track.recording)
    }

    private mutating func enter(_ stream: UInt64) {
        guard let track = tracks[stream] else { return }
        if let place = places[stream] {
            summaries[track.recording]?.tracks[place] = track.summary
        } else {
            places[stream] = summaries[track.recording]?.tracks.count
            summaries[track.recording]?.tracks.append(track.summary)
        }
    }

    private mutating func endIfDone(_ recording: String, at now: MonotonicTime) {
        guard ending.contains(recording), !tracks.values.contains(where: { $0.recording == recording }),
            var summary = summaries[recording]
        else { return }
        // The disk may now accept what it refused when a file ended.
        if summary.hasUnfinishedFiles { _ = summary.finishFiles(in: books.folder(of: summary)) }
        let (ended, wall) = (now.milliseconds + (clockOffsets.removeValue(forKey: recording) ?? 0), wallClock())
        summary.endedAt = ended
        if abs(wall - ended) > Self.clockTolerance { summary.keptSince = wall }
        summary.ended = "stopped"
        summary.state = summary.tracks.contains { !$0.files.isEmpty } ? .ready : .empty
        summary.markForWork(movesIndexes: movesIndexes)
        parts.forget(recording)
        summaries[recording] = summary
        save(recording)
        ending.remove(recording)
        summaries[recording] = nil
        if let finisher, books[recording]?.awaitsJoining == true {
            finisher.announceWhenJoined(recording)
        } else {
            finisher?.post(recording)
            news.yield(RecorderThread.News(endOf: summary))
        }
    }

    private func save(_ recording: String) {
        guard let summary = summaries[recording] else { return }
        books.save(summary)
    }

    private func report(_ summary: RecordingSummary, _ event: RecordingEvent) {
        news.yield(RecorderThread.News(room: summary.room, roomSID: summary.roomSid, event: event))
    }
}
