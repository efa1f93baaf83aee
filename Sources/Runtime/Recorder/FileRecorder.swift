public import Logging
import MediaControl
public import MediaWorkers
public import NetworkIO
public import ObjectStorage
import Primitives
public import RoomService
public import Rooms
import Synchronization

/// How summaries and lines of logs are encoded and decoded: with the edges' JSON.
public struct RecordingCodec: Sendable {
    let encode: @Sendable (RecordingSummary) -> [UInt8]
    let decode: @Sendable ([UInt8]) -> RecordingSummary?
    let encodeLine: @Sendable (LogLine) -> [UInt8]
    let decodeLine: @Sendable ([UInt8]) -> LogLine?

    /// A codec of these parts.
    public init(
        encode: @escaping @Sendable (RecordingSummary) -> [UInt8],
        decode: @escaping @Sendable ([UInt8]) -> RecordingSummary?,
        encodeLine: @escaping @Sendable (LogLine) -> [UInt8],
        decodeLine: @escaping @Sendable ([UInt8]) -> LogLine?
    ) {
        self.encode = encode
        self.decode = decode
        self.encodeLine = encodeLine
        self.decodeLine = decodeLine
    }
}

/// Writes the recordings of rooms into files, on a separate thread, and maintains the index.
public final class FileRecorder: RecordingPlane {
    private let configuration: RecorderConfiguration
    private let books: RecordingBooks
    private let rings: [RecordRing]
    private let thread: RecorderThread
    private let finisher: FileFinisher
    private let loop: Mutex<LoopThread?>
    private let uploader: Uploader?
    private let uploaderLoop: Mutex<LoopThread?>
    /// The news, until every file is finished: only for `run`, and for tests.
    let news: AsyncStream<RecorderThread.News>
    /// Reads for downloads and deletes: a disk that hangs blocks only these, not the threads that all rooms and requests share.
    private let disk: BlockingCalls
    /// Each is a piece of a download of 64 kB, so at most 16 MB of pieces wait.
    private static let mostReading = 256
    /// How often to check for recordings to delete, for files that the disk may now let the recorder finish, and for files to sync.
    private static let sweepInterval = Duration.seconds(10)

    /// A recorder that reads `rings`. Recordings that an earlier process left unfinished are finished before it returns.
    public init(
        _ configuration: RecorderConfiguration, rings: [RecordRing], codec: RecordingCodec, logger: Logger
    ) throws(SystemError) {
        let (stream, continuation) = AsyncStream<RecorderThread.News>.makeStream(
            bufferingPolicy: .bufferingOldest(100_000))
        self.configuration = configuration
        self.rings = rings
        books = try RecordingBooks(configuration, codec, logger: logger)
        let uploader: Uploader? =
            if let storage = configuration.storage {
                try Uploader(books, ObjectStore(storage), partLength: configuration.uploadPartLength)
            } else {
                nil
            }
        self.uploader = uploader
        let finisher = try FileFinisher(books, uploader: uploader, news: continuation)
        self.finisher = finisher
        let thread = try RecorderThread(rings: rings, books: books, finisher: finisher, news: continuation)
        self.thread = thread
        news = stream
        disk = try BlockingCalls(thread: "recording-disk", mostWaiting: Self.mostReading)
        // Their end has not been reported yet: nobody read the news.
        for summary in books.recovered where !summary.awaitsJoining {
            continuation.yield(RecorderThread.News(endOf: summary))
        }
        for summary in books.all where summary.awaitsJoining { finisher.announceWhenJoined(summary.sid) }
        for recording in books.awaitingWork { finisher.post(recording) }
        let finishing = try LoopThread(name: "recording-files", cpu: nil) { finisher.run() }
        if let uploader {
            for recording in books.awaitingUpload { uploader.post(recording) }
            uploaderLoop = Mutex(try LoopThread(name: "recording-upload", cpu: nil) { uploader.run() })
        } else {
            uploaderLoop = Mutex(nil)
        }
        loop = Mutex(
            try LoopThread(name: "recorder", cpu: nil) { [books] in
                thread.run()
                books.recorderLag.end()
                // A recording is announced after it is joined, and nobody is notified once the news have ended. Recordings that are not joined by now are
                // joined and announced at the next start.
                finisher.stop()
                finishing.join()
                continuation.finish()
            })
    }

    // MARK: - For rooms

    public var admission: RecordingAdmission {
        // Checked from here, because a thread that its disk blocks could not report it.
        let isBehind = rings.contains { $0.waiting > $0.capacity / 2 }
        return RecordingAdmission(
            tracksLeft: books.places.left, obstacle: books.hadRoom ? (isBehind ? .recorderBehind : nil) : .diskFull)
    }

    public func apply(_ effect: RecordingEffect, room: String, roomSID: String) {
        switch effect {
        case .started(let info):
            let summary = RecordingSummary(info, room: room, roomSID: roomSID, configuration)
            books.add(summary)
            thread.post(.begin(summary))
        case .track(let recording, let stream, let track, let info):
            books.places.reserve(stream.rawValue)
            thread.post(.track(recording: recording, stream: stream, track: track, info))
        case .refused(let recording, let info, let reason):
            books.countRefusal(reason)
            thread.post(.refused(recording: recording, info, reason))
        case .stopped(let info): thread.post(.end(recording: info.sid))
        }
    }

    /// Reports news to `rooms`, deletes expired recordings, and finishes files that the disk has refused, until the recorder stops.
    public func run(_ rooms: RoomHost) async {
        let sweeper = Task { [books, disk, finisher] in
            while !Task.isCancelled {
                _ = await disk.run {
                    books.secure()
                    for recording in books.finishRefused() { finisher.post(recording) }
                    finisher.retryRefused(at: MonotonicClock.now())
                    books.deleteExpired(wallClock: MonotonicClock.wallMilliseconds(), at: MonotonicClock.now())
                    books.deleteExcess()
                }
                await FileRecorder.secure(books, disk)
                try? await Task.sleep(for: Self.sweepInterval)
            }
        }
        for await item in news {
            if let event = item.event {
                await rooms.recordingHappened(event, room: item.room, roomSID: item.roomSID)
            }
            if let track = item.keyframe { await rooms.requestKeyframe(of: track, room: item.room) }
            if let stream = item.gaveUp { await rooms.recorderGaveUp(stream, room: item.room) }
        }
        sweeper.cancel()
    }

    /// Syncs recorded media: a power loss costs only what was written since. File by file, so that a download waits for only one of them, and not while the
    /// recorder lags.
    private static func secure(_ books: RecordingBooks, _ disk: BlockingCalls) async {
        for path in books.growing where !books.isBehind && !Task.isCancelled {
            _ = await disk.run { books.synchronize(path) }
        }
    }

    /// From now on, files are uploaded with the keys of `storage`.
    public func useKeys(of storage: ObjectStore.Configuration) {
        guard var known = configuration.storage else { return }
        (known.accessKey, known.secretKey) = (storage.accessKey, storage.secretKey)
        uploader?.use(ObjectStore(known))
    }

    /// Stops recording: every file is finished and reported, and then ``run(_:)`` returns. Does not wait for that. Files that are not joined by then are
    /// joined after the next start.
    public func finish() { thread.post(.stop) }

    /// Waits until every file is finished, and stops the work on finished ones, which continues at the next start. Blocks.
    public func stop() {
        finish()
        let running = loop.withLock { loop in
            defer { loop = nil }
            return loop
        }
        running?.join()
        uploader?.stop()
        let uploading = uploaderLoop.withLock { loop in
            defer { loop = nil }
            return loop
        }
        uploading?.join()
    }

    // Files can still be read and deleted after `stop()`.
    deinit { disk.stop() }

    // MARK: - For the API

    /// Recordings, the newest first.
    public var recordings: [RecordingSummary] { books.all }

    /// One recording; nil if there is none.
    public subscript(sid: String) -> RecordingSummary? { books[sid] }

    /// Counters and gauges for metrics.
    public var statistics: RecorderStatistics { books.statistics }

    /// Deletes a recording that has ended; false if there is none.
    public func delete(_ sid: String) async throws(DiskIsBusy) -> Bool {
        try await onDisk { [books, uploader] in
            guard books.delete(sid) else { return false }
            // Its unfinished uploads are removed from the storage.
            uploader?.post(sid)
            return true
        }
    }

    /// A file of a recording for reading; nil if it has none with this name.
    public func file(_ name: String, of sid: String) async throws(DiskIsBusy) -> RecordingFile? {
        guard let path = path(of: name, in: sid) else { return nil }
        return try await onDisk { RecordingFile(path) }
    }

    /// At most `length` bytes of a file from `offset` on; fewer at the end, none if it can no longer be read.
    public func read(_ file: RecordingFile, _ length: Int, at offset: Int64) async throws(DiskIsBusy) -> [UInt8] {
        try await onDisk { file.read(length, at: offset) }
    }

    /// Too many calls wait for the disk, or the recorder has stopped.
    public struct DiskIsBusy: Error {}

    private func onDisk<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async throws(DiskIsBusy) -> Result {
        guard let result = await disk.run(body) else { throw DiskIsBusy() }
        return result
    }

    /// The interface for jobs that work on finished recordings.
    public var jobs: JobBooks { JobBooks(books) { [uploader] in uploader?.post($0) } }

    /// The path of a file of a recording; nil if it has none with this name.
    public func path(of name: String, in sid: String) -> String? {
        guard let summary = books[sid], summary.readableFiles.contains(where: { $0.name == name }) else { return nil }
        return "\(books.folder(of: summary))/\(name)"
    }
}

/// A file of a recording that is being read.
public final class RecordingFile: Sendable {
    /// Open while it is read: meanwhile its table may be moved to the front, which puts another file under its name, or it may be joined with others.
    private let file: OutputFile
    /// Bytes of it when it was opened.
    public let length: Int64
    /// Changes when its bytes change.
    public let version: String

    init?(_ path: String) {
        guard let file = try? OutputFile(reading: path) else { return nil }
        length = file.length
        version = "\(file.number)-\(file.length)"
        self.file = file
    }

    /// At most `length` bytes from `offset` on; fewer at the end, none if it can no longer be read. Blocks.
    func read(_ length: Int, at offset: Int64) -> [UInt8] {
        (try? file.read(length, at: offset)) ?? []
    }
}
