import Logging
public import MediaWorkers
public import NetworkIO
import Playback
import Primitives
public import RoomService
public import Rooms
import Synchronization

/// Plays files into rooms, on a separate thread.
public final class FilePlayer: PlaybackPlane {
    /// Finds the files of a recording: all, or the one with this name.
    public typealias Recordings = @Sendable (_ sid: String, _ file: String?) throws(RoomError) -> [RecordedFile]

    private let configuration: PlayerConfiguration
    private let recordings: Recordings
    private let books = PlaybackBooks()
    private let thread: PlayerThread
    /// Opens files: reading an index of many megabytes must delay neither a playback nor a call.
    private let opener: BlockingCalls
    private let loop: Mutex<LoopThread?>
    private let news: AsyncStream<PlayerThread.News>
    private let endNews: @Sendable () -> Void
    /// The sources and terms of playbacks, by the number of the opened file.
    private let requested = Mutex<[UInt64: (source: PlaybackSource, terms: PlaybackChange)]>([:])

    /// A player for the rooms of `workers`; `seed` determines first sequence numbers and timestamps.
    public init(
        _ configuration: PlayerConfiguration, workers: MediaWorkerPool, seed: UInt64, recordings: @escaping Recordings
    ) throws(SystemError) {
        let (stream, continuation) = AsyncStream<PlayerThread.News>.makeStream(
            bufferingPolicy: .bufferingOldest(10_000))
        self.configuration = configuration
        self.recordings = recordings
        let thread = try PlayerThread(workers: workers, books: books, news: continuation, seed: seed)
        self.thread = thread
        opener = try BlockingCalls(thread: "player-open", mostWaiting: Self.mostOpening)
        news = stream
        endNews = { continuation.finish() }
        loop = Mutex(try LoopThread(name: "player", cpu: nil) { thread.run() })
    }

    /// The maximum number of files that wait to be opened; further requests must be repeated later.
    private static let mostOpening = 32

    // MARK: - For rooms

    public func begin(_ info: PlaybackInfo, of file: OpenedFile, room: String, roomSID: String, worker: WorkerIndex) {
        guard let opened = books.remove(file.number),
            let (source, terms) = requested.withLock({ $0.removeValue(forKey: file.number) })
        else { return }
        var summary = PlaybackSummary(
            sid: info.sid, state: terms.paused == true ? .paused : .playing, room: room, roomSid: roomSID,
            participant: info.participant, identity: info.identity, positionMilliseconds: 0,
            durationMilliseconds: opened.duration.milliseconds,
            loop: terms.loop ?? false, startedAt: info.startedAt,
            tracks: zip(info.tracks, opened.tracks).map { described, item in
                PlaybackSummary.Track(
                    sid: described.sid, kind: "\(described.kind)", codec: "\(described.codec)",
                    longestKeyframeIntervalMilliseconds: item.track.longestKeyframeInterval?.milliseconds)
            })
        switch source {
        case .file(let name): summary.file = name
        case .recording(let sid, let name): (summary.recording, summary.file) = (sid, name)
        }
        books.add(summary)
        thread.post(.begin(info, opened, summary, worker: worker.rawValue))
        guard let position = terms.positionMilliseconds else { return }
        thread.post(.change(playback: info.sid, PlaybackChange(positionMilliseconds: position)))
    }

    public func apply(_ effect: PlaybackEffect) {
        switch effect {
        case .ended(let sid):
            // The caller that ended it no longer finds it; the thread follows later.
            if let summary = books[sid] { books.end(summary) }
            thread.post(.end(playback: sid))
        }
    }

    /// Makes participants leave whose files have ended, until the player stops.
    public func run(_ rooms: RoomHost) async {
        for await item in news { await rooms.playbackHasEnded(item.playback, item.end, room: item.room) }
    }

    /// Ends all playbacks and the threads.
    public func stop() {
        thread.post(.stop)
        opener.stop()
        let running = loop.withLock { loop in
            defer { loop = nil }
            return loop
        }
        running?.join()
        endNews()
    }

    // MARK: - For the API

    /// Opens a source and checks that it can be played. The opened file is then played, or closed by `close`.
    public func open(_ source: PlaybackSource, _ terms: PlaybackChange) async throws(RoomError) -> OpenedFile {
        let result = await opener.run { [configuration, recordings, books] in
            Self.open(source, configuration, recordings, books)
        }
        guard let result else {
            throw RoomError(.overloaded, "too many files wait to be opened", retryAfter: .seconds(2))
        }
        let opened = try result.get()
        requested.withLock { $0[opened.number] = (source, terms) }
        return opened
    }

    private static func open(
        _ source: PlaybackSource, _ configuration: PlayerConfiguration, _ recordings: Recordings, _ books: PlaybackBooks
    ) -> Result<OpenedFile, RoomError> {
        do throws(RoomError) {
            let files: [(file: PlayedFile, start: TimeSpan)]
            switch source {
            case .file(let name):
                guard let directory = configuration.directory else {
                    throw RoomError(
                        .playbackDisabled, "the server has no folder of files to play: set playback.directory")
                }
                guard let file = PlaybackFolder(directory).open(name) else { throw Self.noFile }
                files = [(file, .zero)]
            case .recording(let sid, let name):
                var found: [(file: PlayedFile, start: TimeSpan)] = []
                for recorded in try recordings(sid, name) {
                    guard let file = PlayedFile(path: recorded.path) else { throw Self.noFile }
                    found.append((file, recorded.start))
                }
                files = found
            }
            let tracks: OpenedTracks
            do throws(PlaybackRefusal) {
                tracks = try OpenedTracks(files)
            } catch {
                throw RoomError(.notPlayable, "\(error.sentence) (\(error.word))")
            }
            guard let number = books.keep(tracks, limit: configuration.maximumPlaybacks) else {
                throw RoomError(
                    .overloaded, "as many files are played as the server may play", retryAfter: .seconds(30))
            }
            return .success(OpenedFile(number: number, formats: tracks.formats))
        } catch {
            return .failure(error)
        }
    }

    private static let noFile = RoomError(.fileNotFound, "there is no such file to play")

    /// Closes a file that no room accepted.
    public func close(_ file: OpenedFile) {
        _ = books.remove(file.number)
        _ = requested.withLock { $0.removeValue(forKey: file.number) }
    }

    /// Changes a playback, in the order of the calls.
    public func change(_ sid: String, _ change: PlaybackChange) { thread.post(.change(playback: sid, change)) }

    /// Playbacks, the newest first.
    public var playbacks: [PlaybackSummary] { books.all }

    /// One playback; nil if there is none.
    public subscript(sid: String) -> PlaybackSummary? { books[sid] }

    /// Counters and gauges for metrics.
    public var statistics: PlayerStatistics { books.statistics }
}
