import NetworkIO
import ObjectStorage
import Primitives
import Synchronization

/// The thread that brings finished files to a storage, one at a time, and tries again for as long as it takes. A file stays here until the storage has proved by its
/// checksum that it has it; what a restart interrupts goes on where it was.
final class Uploader: Sendable {
    /// Between tries: doubled with each failure.
    private static let firstPause = TimeInterval.seconds(1)
    private static let longestPause = TimeInterval.seconds(300)
    /// Behind the name of a file whose upload in parts has begun.
    static let suffix = ".upload"

    /// The storage, and whether that is another one since `run` last looked.
    private let current: Mutex<(store: ObjectStore, isNew: Bool)>
    private var store: ObjectStore { current.withLock { $0.store } }
    private let partLength: Int?
    private let queue: WorkQueue
    private let books: RecordingBooks
    /// The upload in parts that the storage refused last, how many parts it had then, and how often that has been so.
    private let stuck = Mutex((path: "", parts: 0, tries: 0))
    /// Some storages that have forgotten an upload say that they fail, not that there is none.
    private static let mostTries = 3

    /// `partLength`: for tests.
    init(_ books: RecordingBooks, _ store: ObjectStore, partLength: Int? = nil) throws(SystemError) {
        queue = try WorkQueue()
        self.books = books
        current = Mutex((store: store, isNew: false))
        self.partLength = partLength
    }

    /// Something of a recording is settled.
    func post(_ recording: String) { queue.post(recording) }

    /// From the next request on, `store` is the storage: its keys are others.
    func use(_ store: ObjectStore) {
        current.withLock { $0 = (store, true) }
        queue.wake()
    }

    func stop() { queue.stop() }

    /// Runs until it is to stop.
    func run() {
        var waiting: [String] = []
        var pause = Self.firstPause
        var next = MonotonicTime.zero
        queue.run {
            for recording in queue.takePosted() where !waiting.contains(recording) { waiting.append(recording) }
            // What the storage has refused with the former keys waits no longer.
            if consumeNew() { (pause, next) = (Self.firstPause, .zero) }
            let later = withdraw(at: MonotonicClock.now())
            guard MonotonicClock.now() >= next else { return min(next, later ?? next) }
            // One failure holds up all: it is the storage or the line to it, as a rule. The next try begins with another recording.
            while !waiting.isEmpty, !queue.mustStop {
                let recording = waiting.removeFirst()
                guard upload(recording) else {
                    waiting.append(recording)
                    next = MonotonicClock.now() + pause
                    pause = min(pause + pause, Self.longestPause)
                    return min(next, books.withdrawals.nextDue ?? next)
                }
                pause = Self.firstPause
                // Many recordings take hours, and what was deleted meanwhile costs for as long.
                withdraw(at: MonotonicClock.now())
            }
            return withdraw(at: MonotonicClock.now())
        }
    }

    private func consumeNew() -> Bool {
        current.withLock { current in
            defer { current.isNew = false }
            return current.isNew
        }
    }

    /// Uploads what is settled of a recording; false: that has failed.
    func upload(_ recording: String) -> Bool {
        books.addUploads(recording) { store.key($0) }
        guard let summary = books[recording] else { return true }
        for upload in summary.uploads ?? [] where upload.state == .pending {
            if queue.mustStop { return false }
            // Deleted since: with its recording, or with the job that had made it.
            guard books.wantsUpload(upload.name, of: recording) else { continue }
            var last: ObjectUpload.Progress?
            do throws(ObjectStore.Failure) {
                let length = try carry(upload, of: summary, &last)
                if !books.uploaded(upload.name, of: summary, bytes: length) { leave(upload, of: summary, nil) }
            } catch {
                guard !queue.mustStop else { return false }
                guard books.wantsUpload(upload.name, of: recording) else {
                    leave(upload, of: summary, last)
                    continue
                }
                books.uploadFailed(upload.name, of: summary, error.words)
                return false
            }
        }
        return true
    }

    /// A file was deleted while it was on its way: the storage keeps nothing of it.
    private func leave(
        _ upload: RecordingSummary.Upload, of summary: RecordingSummary, _ progress: ObjectUpload.Progress?
    ) {
        // With the summary the storage has everything, as if the recording had been deleted a moment later; and it may have had an earlier one.
        let mayBeThere = upload.name != RecordingSummary.sidecar
        books.withdraw(.init(key: upload.key, progress: progress, mayBeThere: mayBeThere, wasUnderWay: true))
        // How far it has come may have been kept in a folder that was just emptied.
        books.keep(nil, at: "\(books.folder(of: summary))/\(upload.name)\(Self.suffix)")
        _ = books.stays(summary)
    }

    /// Removes from the storage what deleted recordings have there unfinished. When to do so again, if that has failed.
    @discardableResult
    func withdraw(at now: MonotonicTime) -> MonotonicTime? {
        for item in books.withdrawals.takeDue(at: now) where !queue.mustStop {
            do throws(ObjectStore.Failure) {
                if let progress = item.progress {
                    try store.abort(progress, of: item.key, isStopped: { [self] in queue.mustStop })
                }
                if item.mayBeThere { try store.delete(item.key, isStopped: { [self] in queue.mustStop }) }
                books.withdrew(item, at: now)
            } catch {
                books.withdrawalFailed(item, error.words, at: now)
            }
        }
        return books.withdrawals.nextDue
    }

    /// Brings a file to the storage. `last`: how far its upload in parts has come.
    private func carry(
        _ upload: RecordingSummary.Upload, of summary: RecordingSummary, _ last: inout ObjectUpload.Progress?
    ) throws(ObjectStore.Failure) -> Int64 {
        let path = "\(books.folder(of: summary))/\(upload.name)", state = path + Self.suffix
        guard let file = RecordingFile(path) else { throw ObjectStore.Failure(words: "the file cannot be read") }
        let former = ObjectUpload.Progress(at: state)
        let job = ObjectUpload(
            store, key: upload.key, length: file.length, partLength: partLength,
            isStopped: { [self] in queue.mustStop || !books.wantsUpload(upload.name, of: summary.sid) },
            read: { file.read($1, at: $0) })
        last = former
        do throws(ObjectStore.Failure) {
            try job.run(from: former) { progress in
                last = progress
                books.keep(progress?.text, at: state)
            }
        } catch {
            // Without a connection, or while the storage is busy, nothing says that the parts are lost.
            if !queue.mustStop, error.mayBeUnknownUpload, let last, isStuck(state, at: last.count) {
                // What it does not answer to is left to its own rules.
                try? store.abort(last, of: upload.key, isStopped: { [self] in queue.mustStop })
                books.keep(nil, at: state)
            }
            throw error
        }
        return file.length
    }

    /// Whether an upload in parts was refused so often without another part that it should begin anew.
    private func isStuck(_ path: String, at parts: Int) -> Bool {
        stuck.withLock { stuck in
            stuck = stuck.path == path && stuck.parts == parts ? (path, parts, stuck.tries + 1) : (path, parts, 1)
            guard stuck.tries >= Self.mostTries else { return false }
            stuck.tries = 0
            return true
        }
    }
}
