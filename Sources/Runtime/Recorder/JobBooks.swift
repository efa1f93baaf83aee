import Glibc
import MP4
import Movies
public import NetworkIO

/// Reads and changes of recordings on behalf of jobs. Reads and writes the disk: for threads that may wait for it.
public struct JobBooks: Sendable {
    private let books: RecordingBooks
    private let settled: @Sendable (String) -> Void

    /// `settled` is called with a recording that has gained or lost a file.
    init(_ books: RecordingBooks, settled: @escaping @Sendable (String) -> Void) {
        self.books = books
        self.settled = settled
    }

    /// One recording; nil if there is none.
    public subscript(recording sid: String) -> RecordingSummary? { books[sid] }

    /// Every job, the newest first.
    public var all: [RecordingJob] {
        books.all.flatMap { $0.jobs ?? [] }.sorted { ($0.createdAt, $0.sid) > ($1.createdAt, $1.sid) }
    }

    /// Adds a job. False: its recording no longer exists.
    public func add(_ job: RecordingJob) -> Bool {
        books.change(job.recording, isKept: true) { summary in
            // The oldest jobs are dropped, so that a sidecar stays small.
            var jobs = (summary.jobs ?? [])
            while jobs.count >= Self.mostJobs, let old = jobs.firstIndex(where: { !$0.state.isOpen && $0.file == nil })
            {
                jobs.remove(at: old)
            }
            summary.jobs = jobs + [job]
        }
    }

    /// Jobs of one recording that are kept, beyond those that are open or have made a file.
    private static let mostJobs = 100

    /// Changes a job; if `isKept`, on the disk, too. False: its recording no longer exists.
    public func change(_ job: RecordingJob, isKept: Bool, _ body: (inout RecordingJob) -> Void) -> Bool {
        var isThere = false
        let isRecording = books.change(job.recording, isKept: isKept) { summary in
            guard let index = summary.jobs?.firstIndex(where: { $0.sid == job.sid }), var found = summary.jobs?[index]
            else { return }
            isThere = true
            body(&found)
            summary.jobs?[index] = found
        }
        if isKept, isThere { settled(job.recording) }
        return isRecording && isThere
    }

    /// Removes the file that a job has made, and the job.
    public func remove(_ job: RecordingJob) {
        guard let summary = books[job.recording] else { return }
        books.withdrawUploads(of: summary) { $0 == job.file?.name }
        _ = books.change(job.recording, isKept: true) { summary in
            summary.jobs?.removeAll { $0.sid == job.sid }
            summary.uploads?.removeAll { $0.name == job.file?.name }
        }
        var job = job
        job.file = nil
        books.clear(job, of: summary)
        settled(job.recording)
    }

    /// Removes the files that a job has left, except its result; all of them if its recording no longer exists.
    public func clear(_ job: RecordingJob, of recording: RecordingSummary) { books.clear(job, of: recording) }

    /// The folder with the files of a recording.
    public func folder(of recording: RecordingSummary) -> String { books.folder(of: recording) }

    /// Whether the disk keeps its reserve after `length` more bytes.
    public func hasRoom(beside length: Int64) -> Bool { books.hasRoom(beside: length) }

    /// When each part of a recording is shown.
    public func timeline(of recording: RecordingSummary) -> RecordingTimeline {
        RecordingTimeline(recording, folder: books.folder(of: recording), decodeLine: books.decodeLine)
    }

    /// The contents of a file in a recording's folder; nil: it is not a movie. `length`: its intended duration, in microseconds, which is trusted for a file
    /// with more samples than the server reads. That many are 7 hours of 30 frames per second with audio, and players play them.
    public func content(of name: String, in recording: RecordingSummary, length: Int64) -> RecordingJob.File? {
        guard let file = RecordingFile("\(books.folder(of: recording))/\(name)") else { return nil }
        let movie: MovieFile
        do throws(MovieFault) {
            movie = try file.readMovie()
        } catch {
            guard error == .tooLarge else { return nil }
            return RecordingJob.File(
                name: name, bytes: file.length, durationMilliseconds: length / 1_000, videoBitrate: nil)
        }
        let lengths = movie.tracks.map { track in
            track.samples.map { ($0.time + Int64($0.duration)) * 1_000 / Int64(track.timescale) }.max() ?? 0
        }
        let video = movie.tracks.firstIndex(where: \.isVideo)
        let bits = video.map { index in movie.tracks[index].samples.reduce(0) { $0 + Int64($1.length) * 8 } }
        return RecordingJob.File(
            name: name, bytes: file.length, durationMilliseconds: lengths.max() ?? 0,
            videoBitrate: video.flatMap { lengths[$0] > 0 ? (bits ?? 0) * 1_000 / lengths[$0] : nil })
    }

    /// Gives the file `name` in a recording's folder its final name, once it is on the disk. False: the disk refuses.
    public func finish(_ name: String, as last: String, in recording: RecordingSummary) -> Bool {
        let folder = books.folder(of: recording)
        do throws(SystemError) {
            let file = try OutputFile("\(folder)/\(name)", isNew: false)
            try file.synchronize()
        } catch {
            return false
        }
        return rename("\(folder)/\(name)", "\(folder)/\(last)") == 0
    }

    /// Copies tracks of the file `name`, by their numbers, into separate files, while the recorder keeps up. Returns when each of those begins, in microseconds
    /// after the file; nil: the file cannot be read, or `isLeft`, which is called before each piece, reports that they are no longer needed.
    public func split(
        _ name: String, into targets: [Int: String], in recording: RecordingSummary, isLeft: () -> Bool
    ) throws(SystemError) -> [Int: Int64]? {
        let folder = books.folder(of: recording)
        guard let file = RecordingFile("\(folder)/\(name)"), let movie = file.movie() else { return nil }
        var starts: [Int: Int64] = [:]
        for (stream, target) in targets.sorted(by: { $0.key < $1.key }) {
            guard movie.tracks.indices.contains(stream), let plan = Self.plan(of: movie.tracks[stream]) else {
                return nil
            }
            var pass = try JoinPass("\(folder)/\(target)", plan, from: [file])
            repeat {
                guard books.waitForRecorder(unless: isLeft) else { return nil }
            } while !(try pass.advance())
            starts[stream] = plan.start
        }
        return starts
    }

    /// A movie of one track with source number 0, with the times of the track.
    private static func plan(of track: MovieTrack) -> JoinedMovie.Plan? {
        let scale = Int64(track.timescale)
        var movie = JoinedMovie()
        do throws(JoinedMovie.Fault) {
            try movie.append(MovieFile(tracks: [track]), source: 0, stream: 0) { $0 * 1_000_000 / scale }
            return try movie.plan()
        } catch {
            return nil
        }
    }

    /// Writes a small file into a recording's folder, as a whole.
    public func write(_ text: String, to name: String, in recording: RecordingSummary) throws(SystemError) {
        try RecordingFolder(books.folder(of: recording)).replace(
            "\(books.folder(of: recording))/\(name)", with: Array(text.utf8))
    }
}
