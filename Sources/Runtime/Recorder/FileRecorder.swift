public import Logging
import MediaControl
public import MediaWorkers
public import NetworkIO
public import ObjectStorage
import Primitives
public import RoomService
public import Rooms
import Synchronization

/// How summaries and lines of logs are written and read: the edges' JSON.
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

/// Writes what rooms record into files, on a thread of its own, and keeps the books.
public final class FileRecorder: RecordingPlane {
    private let configuration: RecorderConfiguration
    private let books: RecordingBooks
    private let rings: [RecordRing]
    private let thread: RecorderThread
    private let finisher: FileFinisher
    private let loop: Mutex<LoopThread?>
    private let uploader: Uploader?
    private let uploaderLoop: Mutex<LoopThread?>
    /// What happens, until every file is finished: for `run` alone, and for tests.
    let news: AsyncStream<RecorderThread.News>
    /// Reads for downloads and deletes: a disk that hangs holds up these alone, not the threads that all rooms and requests share.
    private let disk: BlockingCalls
    /// A piece of a download each, 64 kB, so 16 MB of pieces that wait.
    private static let mostReading = 256
    /// Recordings that are to be deleted, files that the disk may let be finished now, and what is not on the disk yet are looked for this often.
    private static let sweepInterval = Duration.seconds(10)

    /// A recorder that reads `rings`. What an earlier process left unfinished is finished before it returns.
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
        // Nobody was there to be told of their end.
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
                // A recording is announced when it is joined, and nobody learns of that once the news have ended. What is not joined by now the next start joins and announces.
                finisher.stop()
                finishing.join()
                continuation.finish()
            })
    }

    // MARK: - For rooms

    public var admission: RecordingAdmission {
        // Looked at from here: a thread that its disk holds up could not report it.
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

    /// Tells `rooms` what happens, deletes what has expired, and finishes what the disk has refused, until the recorder stops.
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

    /// Brings what is recorded to the disk: a power loss takes what came since. File by file, so that a download waits for one of them alone, and not while the recorder lags.
    private static func secure(_ books: RecordingBooks, _ disk: BlockingCalls) async {
        for path in books.growing where !books.isBehind && !Task.isCancelled {
            _ = await disk.run { books.synchronize(path) }
        }
    }

    /// Files go to their storage with the keys of `storage` from now on.
    public func useKeys(of storage: ObjectStore.Configuration) {
        guard var known = configuration.storage else { return }
        (known.accessKey, known.secretKey) = (storage.accessKey, storage.secretKey)
        uploader?.use(ObjectStore(known))
    }

    /// Nothing is recorded from now on: every file is finished, and told of, after which ``run(_:)`` returns. Waits for none of that. What is not joined by then is
    /// joined after the next start.
    public func finish() { thread.post(.stop) }

    /// Waits until every file is finished, and ends what works on finished ones: it goes on at the next start. Blocks.
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

    // Files are still read and deleted after `stop()`.
    deinit { disk.stop() }

    // MARK: - For the API

    /// Recordings, the newest first.
    public var recordings: [RecordingSummary] { books.all }

    /// One recording; nil when there is none.
    public subscript(sid: String) -> RecordingSummary? { books[sid] }

    /// Figures for metrics.
    public var statistics: RecorderStatistics { books.statistics }

    /// Deletes a recording that has ended; false when there is none.
    public func delete(_ sid: String) async throws(DiskIsBusy) -> Bool {
        try await onDisk { [books, uploader] in
            guard books.delete(sid) else { return false }
            // What of it was on its way to the storage is removed there.
            uploader?.post(sid)
            return true
        }
    }

    /// A file of a recording for reading; nil when it has none of this name.
    public func file(_ name: String, of sid: String) async throws(DiskIsBusy) -> RecordingFile? {
        guard let path = path(of: name, in: sid) else { return nil }
        return try await onDisk { RecordingFile(path) }
    }

    /// At most `length` bytes of a file from `offset` on; fewer at the end, none when it cannot be read any more.
    public func read(_ file: RecordingFile, _ length: Int, at offset: Int64) async throws(DiskIsBusy) -> [UInt8] {
        try await onDisk { file.read(length, at: offset) }
    }

    /// So much waits for the disk that nothing more may, or the recorder has stopped.
    public struct DiskIsBusy: Error {}

    private func onDisk<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async throws(DiskIsBusy) -> Result {
        guard let result = await disk.run(body) else { throw DiskIsBusy() }
        return result
    }

    /// What jobs that work on finished recordings know and change of them.
    public var jobs: JobBooks { JobBooks(books) { [uploader] in uploader?.post($0) } }

    /// Where a file of a recording lies; nil when it has none of this name.
    public func path(of name: String, in sid: String) -> String? {
        guard let summary = books[sid], summary.readableFiles.contains(where: { $0.name == name }) else { return nil }
        return "\(books.folder(of: summary))/\(name)"
    }
}

/// A file of a recording that is read.
public final class RecordingFile: Sendable {
    /// Open for as long as it is read: its table may be moved to the front meanwhile, which makes another file of its name, or it may be joined with others.
    private let file: OutputFile
    /// Bytes of it when it was opened.
    public let length: Int64
    /// Another where its bytes are others.
    public let version: String

    init?(_ path: String) {
        guard let file = try? OutputFile(reading: path) else { return nil }
        length = file.length
        version = "\(file.number)-\(file.length)"
        self.file = file
    }

    /// At most `length` bytes from `offset` on; fewer at the end, none when it cannot be read any more. Blocks.
    func read(_ length: Int, at offset: Int64) -> [UInt8] {
        (try? file.read(length, at: offset)) ?? []
    }
}
