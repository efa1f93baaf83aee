import MediaControl
import MediaWorkers
import NetworkIO
import Primitives
import Recording
import Rooms
import Synchronization

/// The thread that reads the workers' rings and writes the files. Its writes may block for as long as the disk likes: the rings are the bound of what
/// waits, and workers drop what finds no room.
final class RecorderThread: Sendable {
    /// What the thread is told, in order.
    enum Order: Sendable {
        case begin(RecordingSummary)
        case track(recording: String, stream: SubscriptionID, track: TrackID, TrackInfo)
        case refused(recording: String, TrackInfo, RecordingRefusal)
        case end(recording: String)
        case stop
    }

    /// What it tells.
    struct News: Sendable {
        var room: String
        var roomSID: String
        var event: RecordingEvent?
        /// A keyframe of this track is needed.
        var keyframe: TrackID?
    }

    /// No wake-up for each packet: what lies in the rings is at most this old.
    private static let pollInterval = TimeInterval.milliseconds(5)
    private static let advanceInterval = TimeInterval.milliseconds(250)

    private let wake: WakeSignal
    private let orders: Mailbox<Order>
    private let rings: [RecordRing]
    private let books: RecordingBooks
    private let news: AsyncStream<News>.Continuation

    init(
        rings: [RecordRing], books: RecordingBooks, news: AsyncStream<News>.Continuation
    ) throws(SystemError) {
        wake = try WakeSignal()
        orders = Mailbox(wake: wake)
        self.rings = rings
        self.books = books
        self.news = news
    }

    func post(_ order: Order) { _ = orders.post(order) }

    /// Runs until it is told to stop.
    func run() {
        Scheduling.yieldCurrentThread()
        guard let poller = try? Poller(), (try? poller.add(wake.descriptor)) != nil else {
            preconditionFailure("the recorder cannot wait for what it is told")
        }
        var desk = RecorderDesk(books: books, news: news)
        var taken: [Order] = []
        var waiting = [Int](repeating: 0, count: rings.count)
        var nextAdvance = MonotonicTime.zero
        while true {
            let now = MonotonicClock.now()
            // The disk is looked at without recordings, too: a full one would refuse them for ever.
            let deadline = now + (desk.isIdle ? RecorderDesk.lookInterval : Self.pollInterval)
            let ready = poller.wait(until: deadline, now: now)
            if poller.isReady(wake.descriptor, of: ready) { wake.clear() }
            // A track is ordered before its first record is pushed. What waits before the orders are taken is therefore known after them, while the
            // first keyframe of a track whose order came later would be lost.
            for index in rings.indices { waiting[index] = rings[index].waiting }
            books.sawQueue(waiting.reduce(0, +))
            orders.drain(into: &taken)
            for order in taken {
                guard desk.carryOut(order, at: MonotonicClock.now()) else {
                    for ring in rings { desk.read(ring, upTo: ring.waiting) }
                    return desk.finishAll()
                }
            }
            taken.removeAll(keepingCapacity: true)
            for index in rings.indices { desk.read(rings[index], upTo: waiting[index]) }
            let later = MonotonicClock.now()
            guard later >= nextAdvance else { continue }
            nextAdvance = later + Self.advanceInterval
            desk.advance(to: later)
        }
    }
}

/// What the recorder's thread has in work.
private struct RecorderDesk {
    private let books: RecordingBooks
    private let news: AsyncStream<RecorderThread.News>.Continuation
    private var tracks: [UInt64: RecordedTrack] = [:]
    /// Where each stands in its summary.
    private var places: [UInt64: Int] = [:]
    /// Recordings to which no further track comes.
    private var ending: Set<String> = []
    private var summaries: [String: RecordingSummary] = [:]
    private var content: [UInt8] = []
    private var lag = TimeInterval.zero
    private var nextLook = MonotonicTime.zero

    /// How often the disk is looked at.
    static let lookInterval = TimeInterval.seconds(1)

    init(books: RecordingBooks, news: AsyncStream<RecorderThread.News>.Continuation) {
        self.books = books
        self.news = news
    }

    var isIdle: Bool { tracks.isEmpty && summaries.isEmpty }

    // MARK: - Orders

    /// False: stop.
    mutating func carryOut(_ order: RecorderThread.Order, at now: MonotonicTime) -> Bool {
        switch order {
        case .begin(let summary): begin(summary)
        case .track(let recording, let stream, let track, let info):
            guard let summary = summaries[recording] else { break }
            tracks[stream.rawValue] = RecordedTrack(
                info, track: track, recording: summary, folder: books.folder(of: summary),
                clockOffset: MonotonicClock.wallMilliseconds() - now.milliseconds, encode: books.encodeLine)
            note(stream.rawValue)
        case .refused(let recording, let info, let reason):
            var track = RecordingSummary.Track(info)
            (track.fault, track.ended) = (reason.rawValue, true)
            summaries[recording]?.tracks.append(track)
            save(recording)
        case .end(let recording):
            ending.insert(recording)
            endIfDone(recording)
        case .stop: return false
        }
        return true
    }

    private mutating func begin(_ summary: RecordingSummary) {
        summaries[summary.sid] = summary
        do throws(SystemError) {
            try books.makeFolder(of: summary)
        } catch {
            tell(summary, RecordingEvent(.failed, recording: summary.sid, reason: "disk_error"))
        }
        save(summary.sid)
    }

    // MARK: - Records

    /// Reads the first `byteCount` bytes; what came later waits for the next round, so that orders get their turn.
    mutating func read(_ ring: RecordRing, upTo byteCount: Int) {
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
        books.sawLag(lag, tracks: tracks.count, recordings: summaries.count)
        lag = .zero
        guard !books.hasRoom() else { return }
        for (stream, track) in tracks {
            handle(track.fail("disk_full", at: now), of: track, stream: stream)
            remove(stream)
        }
    }

    private mutating func finish(_ stream: UInt64, at now: MonotonicTime) {
        guard let track = tracks[stream] else { return }
        handle(track.finish(at: now), of: track, stream: stream)
        remove(stream)
    }

    private mutating func remove(_ stream: UInt64) {
        guard let track = tracks[stream] else { return }
        note(stream)
        tracks[stream] = nil
        places[stream] = nil
        books.wrote(bytes: track.consumeBytesWritten())
        endIfDone(track.recording)
    }

    /// The process ends: everything is finished.
    mutating func finishAll() {
        let now = MonotonicClock.now()
        for stream in tracks.keys { finish(stream, at: now) }
        for recording in summaries.keys {
            ending.insert(recording)
            endIfDone(recording)
        }
    }

    private mutating func handle(_ happened: [RecordedTrack.News], of track: RecordedTrack, stream: UInt64) {
        for item in happened {
            guard let summary = summaries[track.recording] else { continue }
            switch item {
            case .gap(let reason, let milliseconds):
                books.countGap()
                tell(
                    summary,
                    RecordingEvent(
                        .gap, recording: summary.sid, track: track.summary.sid, reason: reason.rawValue,
                        milliseconds: milliseconds))
            case .requestKeyframe:
                news.yield(
                    RecorderThread.News(room: summary.room, roomSID: summary.roomSid, keyframe: track.track))
            case .failed(let reason):
                books.countFailure()
                tell(
                    summary,
                    RecordingEvent(.failed, recording: summary.sid, track: track.summary.sid, reason: reason))
                note(stream)
            case .changed: note(stream)
            }
        }
    }

    // MARK: - Summaries

    /// What the API shows of recordings in progress is a second old; on the disk it is written where a crash would lose it.
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

    /// Writes down how a track stands.
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

    private mutating func endIfDone(_ recording: String) {
        guard ending.contains(recording), !tracks.values.contains(where: { $0.recording == recording }),
            var summary = summaries[recording]
        else { return }
        summary.endedAt = MonotonicClock.wallMilliseconds()
        summary.ended = "stopped"
        summary.state = summary.tracks.contains { !$0.files.isEmpty } ? .ready : .empty
        summaries[recording] = summary
        save(recording)
        ending.remove(recording)
        summaries[recording] = nil
        books.countFinished(summary.tracks.reduce(0) { $0 + $1.files.count })
        if summary.state == .ready { tell(summary, RecordingEvent(.ready, recording: recording)) }
    }

    private func save(_ recording: String) {
        guard let summary = summaries[recording] else { return }
        books.save(summary)
    }

    private func tell(_ summary: RecordingSummary, _ event: RecordingEvent) {
        news.yield(RecorderThread.News(room: summary.room, roomSID: summary.roomSid, event: event))
    }
}
