import Glibc
public import Logging
public import NetworkIO
import Primitives
public import Recorder
public import RoomService
public import Rooms
import Synchronization

/// Makes files from finished recordings, in separate low-priority processes: compositions, files of another bit rate, copies in another container.
public final class JobRunner: Sendable {
    /// A request for a job. The API has checked the values.
    public struct Request: Sendable, Hashable {
        public var kind: RecordingJob.Kind
        public var layout: RecordingJob.Layout?
        /// The file to encode again, or to copy.
        public var source: String?
        /// Copy only.
        public var container: RecordingJob.Container?
        public var width: Int?
        public var height: Int?
        /// Encoded files only.
        public var encoding: RecordingJob.Encoding?

        /// A job of a kind.
        public init(_ kind: RecordingJob.Kind) { self.kind = kind }
    }

    /// Selects jobs: open ones, or those that have ended.
    public enum Stage: Sendable, Hashable { case open, ended }

    /// The result of a request to remove a job.
    public enum Removal: Sendable, Hashable {
        case done
        /// Refused: the job was no longer in the expected stage.
        case conflict(Stage)
        /// The job was removed meanwhile, or its recording was deleted.
        case notFound
    }

    private struct State {
        var queue: JobQueue
        var random: RandomSource
        var statistics = JobStatistics()
        var isStopping = false
        var threads: [LoopThread] = []
    }

    private struct News: Sendable {
        var room: String
        var roomSID: String
        var event: RecordingEvent
    }

    private let configuration: JobConfiguration
    private let books: JobBooks
    private let logger: Logger
    private let state: Mutex<State>
    /// One for each job that may run at a time.
    private let loops: [IdleLoop]
    /// Stores the changes of requests: they wait for the disk without delaying others.
    private let calls: BlockingCalls
    /// The path of ffmpeg; nil: there are no jobs.
    private let program: String?
    private let news: AsyncStream<News>
    private let newsSink: AsyncStream<News>.Continuation

    /// A job that restarts of the server have interrupted this often is not begun again.
    private static let mostTries = 3
    /// Requests whose change waits for the disk.
    private static let mostWriting = 100

    /// Jobs for the recordings of `books`. Those of an earlier run of the server continue.
    public init(
        _ configuration: JobConfiguration, _ books: JobBooks, seed: UInt64, logger: Logger
    ) throws(SystemError) {
        self.configuration = configuration
        self.books = books
        self.logger = logger
        program = configuration.path { access($0, X_OK) == 0 }
        state = Mutex(
            State(
                queue: JobQueue(
                    maximumRunning: configuration.maximumRunning, maximumQueued: configuration.maximumQueued),
                random: RandomSource(seed: seed)))
        (news, newsSink) = AsyncStream<News>.makeStream(bufferingPolicy: .bufferingOldest(10_000))
        var loops: [IdleLoop] = []
        if program != nil {
            for _ in 0..<configuration.maximumRunning { loops.append(try IdleLoop()) }
        }
        self.loops = loops
        calls = try BlockingCalls(thread: "recording-list", mostWaiting: Self.mostWriting)
        resume()
        for loop in loops {
            let thread = try LoopThread(name: "recording-job", cpu: nil) { [self] in
                loop.run {
                    if workOff() { return MonotonicClock.now() }
                    // Another thread finishes the files that jobs wait for, and does not signal it.
                    return state.withLock { $0.queue.counts.queued > 0 } ? MonotonicClock.now() + .seconds(1) : nil
                }
            }
            state.withLock { $0.threads.append(thread) }
            loop.wake.signal()
        }
        report()
    }

    private func report() {
        guard program == nil else { return }
        logger.info(
            configuration.program.isEmpty
                ? "no jobs on recordings: recording.ffmpeg is none"
                : "no jobs on recordings (compositions, transcoding): there is no such program; install ffmpeg, or set recording.ffmpeg to where it is",
            ["program": .text(configuration.program)])
    }

    /// Queues the jobs that an earlier run of the server has left open.
    private func resume() {
        for job in books.all.reversed() where job.state.isOpen {
            let isHopeless = job.tries >= Self.mostTries
            _ = books.change(job, isKept: true) { job in
                job.state = isHopeless ? .failed : .queued
                job.progress = 0
                if isHopeless {
                    job.fault = JobFault.interrupted.rawValue
                    job.endedAt = MonotonicClock.wallMilliseconds()
                }
            }
            guard !isHopeless else { continue }
            _ = state.withLock { $0.queue.add(job) }
        }
    }

    // MARK: - For the API

    /// Whether jobs can run.
    public var isAvailable: Bool { program != nil }

    /// Every job, the newest first.
    public var all: [RecordingJob] { books.all }

    /// One job; nil if there is none.
    public subscript(sid: String) -> RecordingJob? { books.all.first { $0.sid == sid } }

    /// Counters and gauges for metrics.
    public var statistics: JobStatistics {
        state.withLock { state in
            var statistics = state.statistics
            (statistics.queued, statistics.running) = state.queue.counts
            return statistics
        }
    }

    /// Adds a job on a recording that has ended, and returns once it is on the disk.
    public func add(_ request: Request, on recording: RecordingSummary) async throws(RoomError) -> RecordingJob {
        guard isAvailable else {
            throw RoomError(
                .notAvailable,
                configuration.program.isEmpty
                    ? "this server does no jobs on recordings (recording.ffmpeg is none)"
                    : "the server has no ffmpeg: install it, or set recording.ffmpeg to where it is")
        }
        try check(request, on: recording)
        let job = state.withLock { state -> RecordingJob? in
            guard !state.isStopping, state.queue.reserve() else { return nil }
            return RecordingJob(
                sid: "JB_" + RandomText.text(12, using: &state.random), recording: recording.sid, kind: request.kind,
                layout: request.layout, source: request.source, container: request.container, width: request.width,
                height: request.height, encoding: request.encoding, createdAt: MonotonicClock.wallMilliseconds())
        }
        guard let job else {
            throw RoomError(.overloaded, "as many jobs wait as may (recording.job_queue)", retryAfter: .seconds(60))
        }
        let added = await calls.run { [self] in
            let isThere = books.add(job)
            let isWaiting = state.withLock { state in
                defer { state.queue.release() }
                return isThere && state.queue.add(job)
            }
            if isThere, !isWaiting { close(job, .cancelled) }
            return isThere
        }
        guard let isThere = added else {
            state.withLock { $0.queue.release() }
            throw Self.slowDisk
        }
        guard isThere else { throw RoomError(.recordingNotFound, "there is no such recording") }
        for loop in loops { loop.wake.signal() }
        return job
    }

    private static let slowDisk = RoomError(
        .overloaded, "the disk does not keep up with what is written about jobs", retryAfter: .seconds(10))

    private func check(_ request: Request, on recording: RecordingSummary) throws(RoomError) {
        guard recording.state != .recording else {
            throw RoomError(.notPlayable, "the recording is in progress (recording_in_progress)")
        }
        let stored = recording.storedFiles.map(\.name)
        guard request.kind != .composition else {
            guard !stored.isEmpty else { throw RoomError(.fileNotFound, "the recording has no files here") }
            return
        }
        guard let source = request.source, stored.contains(source) else {
            throw RoomError(.fileNotFound, "the recording has no file of this name")
        }
        let content = recording.tracks.flatMap { track in
            track.files.filter { $0.name == source || $0.joined == source }.map { (kind: track.kind, codec: $0.codec) }
        }
        guard let container = request.container else {
            guard content.contains(where: { $0.kind == "video" }) else {
                throw RoomError(.notPlayable, "the file has no video (no_video)")
            }
            return
        }
        if let refused = content.first(where: { !container.holds($0.codec) }) {
            throw RoomError(
                .notPlayable,
                "\(container) holds no \(refused.codec), and a copy compresses nothing anew (codec_not_in_container): players of WebM play this file as it is"
            )
        }
    }

    /// Cancels a job that is open; removes one that has ended, with its file. `stage`: only if it is in that stage; nil: in any. What counts is the
    /// job's stage when its turn comes, which a slow disk delays.
    public func remove(_ job: RecordingJob, in stage: Stage? = nil) async throws(RoomError) -> Removal {
        guard let removal = await calls.run({ [self] in removeNow(job, in: stage) }) else { throw Self.slowDisk }
        return removal
    }

    private func removeNow(_ job: RecordingJob, in stage: Stage?) -> Removal {
        guard let found = current(job) else { return .notFound }
        guard found.state.isOpen else {
            guard stage != .open else { return .conflict(.ended) }
            books.remove(found)
            return .done
        }
        guard stage != .ended else { return .conflict(.open) }
        if state.withLock({ $0.queue.cancel(job.sid) }) {
            close(found, .cancelled)
            return .done
        }
        // The thread that runs it ends it, unless it has just ended.
        let last = current(job)?.state
        return last == .finished || last == .failed ? .conflict(.ended) : .done
    }

    /// A job in its current state; nil if there is none.
    private func current(_ job: RecordingJob) -> RecordingJob? {
        books[recording: job.recording]?.jobs?.first { $0.sid == job.sid }
    }

    /// Reports events to `rooms`, until the server stops.
    public func run(_ rooms: RoomHost) async {
        for await item in news {
            await rooms.recordingHappened(item.event, room: item.room, roomSID: item.roomSID)
        }
    }

    /// Requests the end of the processes. Unfinished jobs begin again at the next start.
    public func beginStop() {
        state.withLock { $0.isStopping = true }
        for loop in loops { loop.stop() }
    }

    /// Ends the processes, which takes a moment.
    public func stop() {
        beginStop()
        let threads = state.withLock { state in
            defer { state.threads = [] }
            return state.threads
        }
        for thread in threads { thread.join() }
        calls.stop()
        newsSink.finish()
    }

    // MARK: - On the threads of jobs

    /// Runs the next job, if there is one.
    private func workOff() -> Bool {
        guard let program,
            let job = state.withLock({ $0.queue.next { books[recording: $0.recording]?.awaitsWork != true } })
        else { return false }
        if let recording = books[recording: job.recording] { work(on: job, of: recording, program) }
        state.withLock { $0.queue.end(job.sid) }
        // Threads that found the maximum number running may check again.
        for loop in loops { loop.wake.signal() }
        return true
    }

    private func work(on job: RecordingJob, of recording: RecordingSummary, _ program: String) {
        let began = MonotonicClock.now()
        _ = books.change(job, isKept: true) { job in
            job.state = .running
            job.tries += 1
            job.startedAt = MonotonicClock.wallMilliseconds()
        }
        announce(.jobStarted, job, recording)
        let longest = configuration.longest
        let work = JobWork(
            job: job, recording: recording, books: books,
            program: ChildProgram(
                program, folder: books.folder(of: recording), memoryBytes: configuration.memoryBytes),
            threads: max(1, Processors.busyAtOnce() / max(1, configuration.maximumRunning)),
            fault: { [self] in
                let (isStopping, isCancelled) = state.withLock { ($0.isStopping, $0.queue.isCancelled(job.sid)) }
                return JobCircumstances(
                    isCancelled: isCancelled, isStopping: isStopping,
                    isDeleted: books[recording: recording.sid] == nil, age: MonotonicClock.now() - began,
                    longest: longest, hasRoom: books.hasRoom(beside: 0)
                ).fault
            },
            progress: { [books] done in _ = books.change(job, isKept: false) { $0.progress = min(1, max(0, done)) } },
            used: { [self] time in
                state.withLock { $0.statistics.processorTime = $0.statistics.processorTime + time }
            },
            complain: { [logger] words in
                logger.error(
                    "ffmpeg refuses a job on a recording",
                    ["job": .text(job.sid), "recording": .text(job.recording), "words": .text(words)])
            })
        do throws(JobFault) {
            let file = try work.run()
            // A client that sees the job as finished finds only its result.
            var whole = job
            whole.file = file
            books.clear(whole, of: recording)
            let isThere = books.change(job, isKept: true) { job in
                job.state = .finished
                job.progress = 1
                job.file = file
                job.endedAt = MonotonicClock.wallMilliseconds()
            }
            if !isThere { books.clear(job, of: recording) }
            state.withLock { $0.statistics.finished += 1 }
            announce(.jobFinished, job, recording)
        } catch .stopped {
            books.clear(job, of: recording)
            _ = books.change(job, isKept: true) { job in
                job.state = .queued
                job.progress = 0
                // The end of the server does not count as the job's failure.
                job.tries -= 1
            }
        } catch {
            books.clear(job, of: recording)
            close(job, error)
        }
    }

    private func close(_ job: RecordingJob, _ fault: JobFault) {
        _ = books.change(job, isKept: true) { job in
            job.state = fault == .cancelled ? .cancelled : .failed
            job.fault = fault.rawValue
            job.endedAt = MonotonicClock.wallMilliseconds()
        }
        state.withLock {
            if fault == .cancelled { $0.statistics.cancelled += 1 } else { $0.statistics.failed += 1 }
        }
        guard let recording = books[recording: job.recording] else { return }
        announce(.jobFailed, job, recording, reason: fault.rawValue)
    }

    private func announce(
        _ kind: RecordingEvent.Kind, _ job: RecordingJob, _ recording: RecordingSummary, reason: String? = nil
    ) {
        var event = RecordingEvent(kind, recording: recording.sid, reason: reason)
        event.job = job.sid
        newsSink.yield(News(room: recording.room, roomSID: recording.roomSid, event: event))
    }
}
