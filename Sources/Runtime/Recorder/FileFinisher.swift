import Glibc
import MP4
import Movies
import NetworkIO
import Primitives
import Synchronization
import WebM

/// The thread that works on finished files, one at a time and with low priority: it moves their tables to the front, or joins those that belong together. It
/// waits while the recorder lags.
final class FileFinisher: Sendable {
    private let queue: WorkQueue
    private let books: RecordingBooks
    private let uploader: Uploader?
    private let news: AsyncStream<RecorderThread.News>.Continuation?
    /// Recordings whose end is announced after their files are joined: the files that would be announced before are removed then.
    private let unannounced = Mutex(Set<String>())
    private let nextRetry = Mutex(MonotonicTime.zero)
    /// A copy that runs out of disk space, because recordings in progress take it, must not be made over and over.
    private static let retryInterval = TimeSpan.seconds(600)

    /// `uploader` is notified of finished work, `news` of recordings whose files are ready.
    init(
        _ books: RecordingBooks, uploader: Uploader? = nil, news: AsyncStream<RecorderThread.News>.Continuation? = nil
    ) throws(SystemError) {
        queue = try WorkQueue()
        self.books = books
        self.uploader = uploader
        self.news = news
    }

    /// A file of a recording is finished, or its parts are.
    func post(_ recording: String) { queue.post(recording) }

    /// A recording has ended, and some of its files are to be joined: its end is announced then.
    func announceWhenJoined(_ recording: String) {
        unannounced.withLock { _ = $0.insert(recording) }
        post(recording)
    }

    /// Requests moves of tables and joins for which the disk had no room before. Does nothing if it did so recently. Queries the disk.
    func retryRefused(at now: MonotonicTime) {
        let isDue = nextRetry.withLock { next in
            guard now >= next else { return false }
            next = now + Self.retryInterval
            return true
        }
        guard isDue else { return }
        for recording in books.retryRefused() { post(recording) }
    }

    func stop() { queue.stop() }

    /// Runs until it is stopped.
    func run() {
        queue.run {
            workOff()
            return nil
        }
    }

    /// Carries out what was posted.
    func workOff() {
        for recording in queue.dequeueAll() where !queue.mustStop {
            guard let summary = books[recording] else { continue }
            index(summary)
            join(summary)
            announce(recording)
            uploader?.post(recording)
        }
    }

    private func announce(_ recording: String) {
        guard let summary = books[recording], !summary.awaitsJoining,
            unannounced.withLock({ $0.remove(recording) }) != nil
        else { return }
        news?.yield(RecorderThread.News(endOf: summary))
    }

    // MARK: - Tables

    private func index(_ summary: RecordingSummary) {
        for file in summary.tracks.flatMap(\.files) where file.index == .pending {
            let path = "\(books.folder(of: summary))/\(file.name)"
            guard let fault = move(path, length: file.bytes ?? 0) else { return }
            guard books.indexed(file.name, of: summary, fault: fault.isEmpty ? nil : fault) else { return }
        }
    }

    /// Why the file keeps its table after its data; empty: it does not. nil: this has to stop.
    private func move(_ path: String, length: Int64) -> String? {
        do throws(SystemError) {
            guard books.hasRoom(beside: length) else { return JoinFault.diskFull.rawValue }
            guard var pass = try FrontIndexPass(path) else {
                // A file that the disk did not let the recorder finish has no table that could be moved.
                return try FrontIndexPass.isDone(path) ? "" : JoinFault.diskError.rawValue
            }
            return inSlices(path) { () throws(SystemError) in try pass.advance() }.map { $0?.rawValue ?? "" }
        } catch {
            return JoinFault(error).rawValue
        }
    }

    /// Runs a pass over the file at `path` until it is done; returns what has stopped it, if anything has. The outer nil: this has to stop.
    private func inSlices(_ path: String, _ advance: () throws(SystemError) -> Bool) -> JoinFault?? {
        do throws(SystemError) {
            while !(try advance()) {
                guard books.hasRoom(beside: 0) else {
                    FrontIndexPass.abandon(path)
                    return .some(.diskFull)
                }
                // A process that ends waits no longer than this.
                guard books.waitForRecorder(unless: { queue.mustStop }) else {
                    FrontIndexPass.abandon(path)
                    return nil
                }
            }
            return .some(nil)
        } catch {
            FrontIndexPass.abandon(path)
            return .some(JoinFault(error))
        }
    }

    // MARK: - Parts

    private func join(_ summary: RecordingSummary) {
        for joined in summary.joined ?? [] where joined.state == .pending {
            guard let result = write(joined, of: summary),
                books.joined(joined.name, of: summary, result)
            else { return }
        }
    }

    /// The contents of the file, or why there is none. nil: this has to stop.
    private func write(
        _ joined: RecordingSummary.JoinedFile, of summary: RecordingSummary
    ) -> Result<JoinedContent, JoinFault>? {
        let folder = books.folder(of: summary)
        let path = "\(folder)/\(joined.name)"
        do throws(JoinFault) {
            let (files, names, streams, plan) = try JoinPlanner(
                summary, folder: folder, decodeLine: books.decodeLine
            ).plan(joined)
            guard books.hasRoom(beside: plan.length) else { throw .diskFull }
            guard let fault = try run(path, plan, files) else { return nil }
            if let fault { throw fault }
            return .success(
                JoinedContent(
                    startMilliseconds: plan.start / 1_000, durationMilliseconds: plan.duration / 1_000,
                    bytes: plan.length, names: Set(names), tracks: plan.streams.map { streams[$0] }))
        } catch {
            return .failure(error)
        }
    }

    private func run(
        _ path: String, _ plan: JoinedMovie.Plan, _ files: [RecordingFile]
    ) throws(JoinFault) -> JoinFault?? {
        do throws(SystemError) {
            var pass = try JoinPass(path, plan, from: files)
            return inSlices(path) { () throws(SystemError) in try pass.advance() }
        } catch {
            throw JoinFault(error)
        }
    }
}

extension JoinFault {
    /// The disk's error.
    init(_ error: SystemError) { self = error.code == ENOSPC ? .diskFull : .diskError }
}

extension RecordingFile {
    /// Its tracks and samples; nil if it is not a movie.
    func movie() -> MovieFile? { try? readMovie() }

    /// Its tracks and samples. Throws the reason if there are none.
    func readMovie() throws(MovieFault) -> MovieFile {
        let isMatroska = MatroskaReader.recognizes(read(MatroskaReader.signatureLength, at: 0).span.bytes)
        return try isMatroska ? readMovie(MatroskaReader.self) : readMovie(MovieFileReader.self)
    }

    private func readMovie<Reader: MovieReading>(_: Reader.Type) throws(MovieFault) -> MovieFile {
        var reader = Reader(fileLength: length)
        while !reader.isDone {
            let bytes = read(reader.wanted.length, at: reader.wanted.offset)
            reader.receive(bytes.span.bytes)
        }
        return try reader.movie()
    }
}
