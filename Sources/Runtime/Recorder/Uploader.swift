import NetworkIO
import ObjectStorage
import Primitives
import Synchronization

/// The thread that uploads finished files to a storage, one at a time, and retries for as long as it takes. A file stays here until the storage has proved by
/// its checksum that it has it; an upload that a restart interrupts continues.
final class Uploader: Sendable {
    /// Between tries: doubled with each failure.
    private static let firstPause = TimeSpan.seconds(1)
    private static let longestPause = TimeSpan.seconds(300)
    /// The suffix of the file with the state of an upload in parts.
    static let suffix = ".upload"

    /// The storage, and whether it was replaced since `run` last looked.
    private let current: Mutex<(store: ObjectStore, isNew: Bool)>
    private var store: ObjectStore { current.withLock { $0.store } }
    private let partLength: Int?
    private let queue: WorkQueue
    private let books: RecordingBooks
    /// The upload in parts that the storage refused last, how many parts it had then, and how many times in a row.
    private let stuck = Mutex((path: "", parts: 0, tries: 0))
    /// Some storages that have forgotten an upload report an internal failure instead of a missing upload.
    private static let mostTries = 3

    /// `partLength`: for tests.
    init(_ books: RecordingBooks, _ store: ObjectStore, partLength: Int? = nil) throws(SystemError) {
        queue = try WorkQueue()
        self.books = books
        current = Mutex((store: store, isNew: false))
        self.partLength = partLength
    }

    /// Some files of a recording no longer change.
    func post(_ recording: String) { queue.post(recording) }

    /// From the next request on, `store` is the storage: it has other keys.
    func use(_ store: ObjectStore) {
        current.withLock { $0 = (store, true) }
        queue.wake()
    }

    func stop() { queue.stop() }

    /// Runs until it is stopped.
    func run() {
        var waiting: [String] = []
        var pause = Self.firstPause
        var next = MonotonicTime.zero
        queue.run {
            for recording in queue.dequeueAll() where !waiting.contains(recording) { waiting.append(recording) }
            // Uploads that the storage refused with the former keys wait no longer.
            if consumeNew() { (pause, next) = (Self.firstPause, .zero) }
            let later = withdraw(at: MonotonicClock.now())
            guard MonotonicClock.now() >= next else { return min(next, later ?? next) }
            // One failure pauses all uploads: its cause is usually the network or the storage. The next try begins with another recording.
            while !waiting.isEmpty, !queue.mustStop {
                let recording = waiting.removeFirst()
                guard upload(recording) else {
                    waiting.append(recording)
                    next = MonotonicClock.now() + pause
                    pause = min(pause + pause, Self.longestPause)
                    return min(next, books.withdrawals.nextDue ?? next)
                }
                pause = Self.firstPause
                // Uploading many recordings takes hours, and deleted ones cost as long as they are kept.
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

    /// Uploads the files of a recording that no longer change; false: that has failed.
    func upload(_ recording: String) -> Bool {
        books.addUploads(recording) { store.key($0) }
        guard let summary = books[recording] else { return true }
        for upload in summary.uploads ?? [] where upload.state == .pending {
            if queue.mustStop { return false }
            // Deleted since: with its recording, or with the job that made it.
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

    /// A file was deleted during its upload: the storage keeps nothing of it.
    private func leave(
        _ upload: RecordingSummary.Upload, of summary: RecordingSummary, _ progress: ObjectUpload.Progress?
    ) {
        // With the summary, the storage has everything, as if the recording had been deleted a moment later; and it may have had an earlier one.
        let mayBeThere = upload.name != RecordingSummary.sidecar
        books.withdraw(.init(key: upload.key, progress: progress, mayBeThere: mayBeThere, wasUnderWay: true))
        // The upload's state may have been stored in a folder that was just emptied.
        books.keep(nil, at: "\(books.folder(of: summary))/\(upload.name)\(Self.suffix)")
        _ = books.stays(summary)
    }

    /// Removes unfinished uploads of deleted recordings from the storage. Returns when to try again, if that has failed.
    @discardableResult
    func withdraw(at now: MonotonicTime) -> MonotonicTime? {
        for item in books.withdrawals.removeDue(at: now) where !queue.mustStop {
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

    /// Uploads a file to the storage. `last`: the progress of its upload in parts.
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
            // If there is no connection, or the storage is busy, this does not mean that the parts are lost.
            if !queue.mustStop, error.mayBeUnknownUpload, let last, isStuck(state, at: last.count) {
                // Uploads for which it does not answer are left to its own rules.
                try? store.abort(last, of: upload.key, isStopped: { [self] in queue.mustStop })
                books.keep(nil, at: state)
            }
            throw error
        }
        return file.length
    }

    /// Whether an upload in parts was refused so often without progress that it should begin anew.
    private func isStuck(_ path: String, at parts: Int) -> Bool {
        stuck.withLock { stuck in
            stuck = stuck.path == path && stuck.parts == parts ? (path, parts, stuck.tries + 1) : (path, parts, 1)
            guard stuck.tries >= Self.mostTries else { return false }
            stuck.tries = 0
            return true
        }
    }
}
