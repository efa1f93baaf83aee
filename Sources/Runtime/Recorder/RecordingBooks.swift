import Logging
import NetworkIO
import ObjectStorage
import Primitives
import Rooms
import Synchronization

/// The index of all recordings, in memory and on the disk. Read by the API, written by the recorder's thread.
final class RecordingBooks: Sendable {
    private struct State {
        var summaries: [String: RecordingSummary] = [:]
        var statistics = RecorderStatistics()
        var reserve: DiskReserve
        /// Recordings in progress whose summary was written and may not be on the disk yet.
        var unsecured: Set<String> = []
        var retention = Retention(.zero)
    }

    private let state: Mutex<State>
    /// The recorder's thread and the one that moves tables both write summaries.
    private let writing = Mutex(())
    /// Copies of summaries are synced by the thread that serves downloads, and by the one that joins files.
    let securing = Mutex(())
    let place: RecordingFolder
    /// The tracks that are recorded.
    let places: TrackPlaces
    /// How long records wait for the recorder's thread.
    let recorderLag = RecorderLag()
    /// The uploads of deleted recordings that a storage may still have.
    let withdrawals = UploadWithdrawals()
    private let configuration: RecorderConfiguration
    let encode: @Sendable (RecordingSummary) -> [UInt8]
    let encodeLine: @Sendable (LogLine) -> [UInt8]
    let decodeLine: @Sendable ([UInt8]) -> LogLine?
    let logger: Logger
    /// Recordings that an earlier run of the server left unfinished, as they were finished now.
    let recovered: [RecordingSummary]

    init(_ configuration: RecorderConfiguration, _ codec: RecordingCodec, logger: Logger) throws(SystemError) {
        self.configuration = configuration
        state = Mutex(State(reserve: DiskReserve(configuration.reserveBytes)))
        encode = codec.encode
        encodeLine = codec.encodeLine
        decodeLine = codec.decodeLine
        self.logger = logger
        place = RecordingFolder(configuration.directory)
        places = TrackPlaces(configuration.maximumTracks)
        try place.make(configuration.directory)
        var repair = CrashRepair(place, codec, movesIndexes: configuration.movesIndexes, logger: logger)
        let found = repair.run()
        recovered = repair.finished
        state.withLock {
            ($0.summaries, $0.retention) = (found, Retention(configuration.keptFor, inherited: Set(found.keys)))
        }
        _ = hasRoom()
    }

    // MARK: - Contents

    var all: [RecordingSummary] {
        state.withLock { $0.summaries.values.sorted { ($0.startedAt, $0.sid) > ($1.startedAt, $1.sid) } }
    }

    subscript(sid: String) -> RecordingSummary? { state.withLock { $0.summaries[sid] } }

    var statistics: RecorderStatistics {
        state.withLock { state in
            var statistics = state.statistics
            statistics.tracks = places.count
            statistics.lag = recorderLag.value(at: MonotonicClock.now())
            statistics.uploadsPending = state.summaries.values.reduce(0) { sum, summary in
                sum + (summary.uploads ?? []).count { $0.state == .pending }
            }
            statistics.storedBytes = state.summaries.values.reduce(0) { $0 + $1.bytes }
            return statistics
        }
    }

    /// Recordings with files on which an earlier run of the server still had to work.
    var awaitingWork: [String] { all.filter(\.awaitsWork).map(\.sid).reversed() }

    /// Recordings of which a storage may not have everything.
    var awaitingUpload: [String] { all.filter { !$0.isUploaded }.map(\.sid).reversed() }

    /// Whether tables of finished files are moved to the front.
    var movesIndexes: Bool { configuration.movesIndexes }

    func folder(of summary: RecordingSummary) -> String { place.folder(room: summary.roomSid, recording: summary.sid) }

    func makeFolder(of summary: RecordingSummary) throws(SystemError) { try place.make(folder(of: summary)) }

    /// A recording begins; its folder is created later.
    func add(_ summary: RecordingSummary) { state.withLock { $0.summaries[summary.sid] = summary } }

    /// Updates a recording in progress, only in memory.
    func show(_ summary: RecordingSummary) {
        var summary = summary
        state.withLock { state in
            if let known = state.summaries[summary.sid] { summary.keepFinished(of: known) }
            state.summaries[summary.sid] = summary
        }
    }

    func save(_ summary: RecordingSummary) {
        show(summary)
        write(summary.sid)
    }

    /// The table of a file was moved, or (`fault`) stays in its place. False: the recording was deleted meanwhile.
    func indexed(_ name: String, of recording: RecordingSummary, fault: String?) -> Bool {
        let changed = state.withLock { state -> RecordingSummary? in
            guard var summary = state.summaries[recording.sid] else { return nil }
            for track in summary.tracks.indices {
                for file in summary.tracks[track].files.indices where summary.tracks[track].files[file].name == name {
                    summary.tracks[track].files[file].index = fault == nil ? .front : .end
                    summary.tracks[track].files[file].indexFault = fault
                }
            }
            state.summaries[recording.sid] = summary
            if fault == nil { state.statistics.filesIndexed += 1 } else { state.statistics.filesNotIndexed += 1 }
            return summary
        }
        if changed != nil, let fault {
            logger.warning(
                "the table of a recorded file stays at its end",
                ["recording": .text(recording.sid), "file": .text(name), "reason": .text(fault)])
        }
        if changed != nil { write(recording.sid) }
        return stays(recording)
    }

    /// A part has become one file, which replaces those of its tracks, or (the fault) they stay. False: the recording was deleted meanwhile.
    func joined(
        _ name: String, of recording: RecordingSummary, _ result: Result<JoinedContent, JoinFault>
    ) -> Bool {
        let isThere = state.withLock { state in
            guard state.summaries[recording.sid] != nil else { return false }
            state.summaries[recording.sid]?.join(name, result)
            if case .success = result {
                state.statistics.filesJoined += 1
            } else {
                state.statistics.filesNotJoined += 1
            }
            return true
        }
        // Even after a power loss, a summary must not name files that no longer exist.
        let isWritten = isThere && write(recording.sid) && secure(recording.sid)
        switch result {
        case .success(let content):
            // The summary on the disk may still name the files of the tracks: they stay, and are joined again at the next start.
            if isWritten { for name in content.names { place.remove("\(folder(of: recording))/\(name)") } }
        case .failure(let fault):
            logger.warning(
                "files of a recording stay apart: they cannot be joined",
                ["recording": .text(recording.sid), "file": .text(name), "reason": .text(fault.rawValue)])
        }
        return stays(recording)
    }

    /// Whether a recording was not deleted meanwhile; otherwise files that were written into its folder afterwards are removed.
    func stays(_ recording: RecordingSummary) -> Bool {
        // Deleting does not wait for a file that is being written: what it leaves is removed here.
        guard self[recording.sid] == nil else { return true }
        place.delete(room: recording.roomSid, recording: recording.sid)
        return false
    }

    /// Writes the summary of a recording: always the latest state, whichever thread calls last. Returns whether it is on the disk.
    @discardableResult
    func write(_ sid: String) -> Bool {
        writing.withLock { _ in
            guard let summary = self[sid] else { return false }
            do throws(SystemError) {
                // While the recording continues, it is written often, by the thread that writes the media: `secure` syncs a copy.
                let goesOn = summary.state == .recording
                try place.replace(
                    "\(folder(of: summary))/\(RecordingSummary.sidecar)", with: encode(summary), isDurable: !goesOn)
                if goesOn { state.withLock { _ = $0.unsecured.insert(sid) } } else { removeCopy(of: summary) }
                // If it was deleted while this was written, it is removed here: the next start would find it again.
                return stays(summary)
            } catch {
                logger.error(
                    "the summary of a recording cannot be written",
                    ["recording": .text(sid), "error": .text(error.description)])
                return false
            }
        }
    }

    /// Deletes a recording that has ended; false if there is none.
    func delete(_ sid: String) -> Bool {
        let removed = state.withLock { state -> RecordingSummary? in
            guard let summary = state.summaries[sid], summary.state != .recording else { return nil }
            state.summaries[sid] = nil
            return summary
        }
        guard let removed else { return false }
        withdrawUploads(of: removed)
        place.delete(room: removed.roomSid, recording: sid)
        return true
    }

    /// Whether a recording may be deleted without a request: not before the storage has it.
    private func mayGo(_ summary: RecordingSummary) -> Bool { configuration.storage == nil || summary.isUploaded }

    /// Deletes recordings that have been kept long enough; `wallClock` in milliseconds since 1970.
    func deleteExpired(wallClock: Int64, at now: MonotonicTime) {
        let all = all
        let found = state.withLock { $0.retention.look(at: all, wallClock: wallClock, at: now) }
        for (sid, since) in found.moved { _ = change(sid, isKept: true) { $0.keptSince = since } }
        for summary in found.expired where mayGo(summary) && delete(summary.sid) {
            state.withLock { $0.statistics.deletedByAge += 1 }
            logger.info("a recording has expired", ["recording": .text(summary.sid)])
        }
    }

    /// Deletes finished recordings, in the order in which they ended, until all together are within their limit.
    func deleteExcess() {
        let most = configuration.maximumBytes
        guard most > 0 else { return }
        var excess = statistics.storedBytes - most
        // Whatever the clock shows: those of an earlier run of the server ended before those of this one.
        let inherited = state.withLock(\.retention.inherited)
        let finished = all.filter { $0.endedAt != nil && mayGo($0) }.sorted {
            (inherited.contains($0.sid) ? 0 : 1, $0.retainedFrom ?? 0, $0.sid)
                < (inherited.contains($1.sid) ? 0 : 1, $1.retainedFrom ?? 0, $1.sid)
        }
        for summary in finished where excess > 0 && summary.bytes > 0 {
            guard delete(summary.sid) else { continue }
            excess -= summary.bytes
            state.withLock { $0.statistics.deletedForSpace += 1 }
            logger.info(
                "a recording was deleted because recordings take more space than recording.max_size",
                ["recording": .text(summary.sid), "bytes": .number(Int(summary.bytes))])
        }
    }

    // MARK: - Uploads

    /// Registers the files of a recording that are to be uploaded; `key` is the name of each in the storage.
    func addUploads(_ sid: String, key: (String) -> String) {
        guard let summary = self[sid] else { return }
        let names = place.names(in: folder(of: summary))
        let isNew = state.withLock {
            $0.summaries[sid]?.addUploads(names) { key("\(summary.roomSid)/\(sid)/\($0)") } ?? false
        }
        if isNew { write(sid) }
        removeUploaded(sid)
    }

    /// Whether a file is still to be uploaded: it may have been deleted.
    func wantsUpload(_ name: String, of sid: String) -> Bool {
        state.withLock { state in
            (state.summaries[sid]?.uploads ?? []).contains { $0.name == name && $0.state == .pending }
        }
    }

    /// Registers deleted files that may be in a storage: in parts, which only the recording's folder shows, so call this before it is emptied; or whole, if
    /// they were put but not proved. The summary is put last, when nothing else is pending.
    func withdrawUploads(of recording: RecordingSummary, _ isDeleted: (_ name: String) -> Bool = { _ in true }) {
        guard configuration.storage != nil else { return }
        for upload in recording.uploads ?? [] where upload.state == .pending && isDeleted(upload.name) {
            let state = "\(folder(of: recording))/\(upload.name)\(Uploader.suffix)"
            withdraw(
                .init(
                    key: upload.key, progress: ObjectUpload.Progress(at: state),
                    mayBeThere: upload.name != RecordingSummary.sidecar))
        }
    }

    /// A storage has proved that it has a file. False: it was deleted here meanwhile.
    @discardableResult
    func uploaded(_ name: String, of recording: RecordingSummary, bytes: Int64) -> Bool {
        let isThere = change(name, of: recording) { upload in
            upload.state = .done
            upload.fault = nil
            upload.bytes = bytes
            upload.uploadedAt = MonotonicClock.wallMilliseconds()
        }
        guard isThere else { return false }
        state.withLock {
            $0.statistics.filesUploaded += 1
            $0.statistics.bytesUploaded += UInt64(bytes)
        }
        removeUploaded(recording.sid)
        return true
    }

    /// Deletes local files, if the configuration says so, once the storage has the whole recording and no job reads it.
    private func removeUploaded(_ sid: String) {
        guard !configuration.keepsUploaded, let summary = self[sid], summary.isUploaded,
            !(summary.jobs ?? []).contains(where: \.state.isOpen)
        else { return }
        let media = Set(summary.readableFiles.map(\.name))
        for upload in summary.uploads ?? [] where media.contains(upload.name) && upload.state == .done {
            place.remove("\(folder(of: summary))/\(upload.name)")
            change(upload.name, of: summary) { $0.isRemoved = true }
        }
    }

    /// A try has failed; `words` contain no credentials.
    func uploadFailed(_ name: String, of recording: RecordingSummary, _ words: String) {
        change(name, of: recording) { upload in
            upload.failures += 1
            upload.fault = words
        }
        state.withLock { $0.statistics.uploadFailures += 1 }
        logger.warning(
            "a file of a recording is not uploaded yet; it will be tried again",
            ["recording": .text(recording.sid), "file": .text(name), "reason": .text(words)])
    }

    @discardableResult
    private func change(
        _ name: String, of recording: RecordingSummary, _ body: (inout RecordingSummary.Upload) -> Void
    ) -> Bool {
        let isThere = state.withLock { state in
            guard var summary = state.summaries[recording.sid], var uploads = summary.uploads,
                let index = uploads.firstIndex(where: { $0.name == name })
            else { return false }
            body(&uploads[index])
            summary.uploads = uploads
            state.summaries[recording.sid] = summary
            return true
        }
        if isThere { write(recording.sid) }
        _ = stays(recording)
        return isThere
    }

    // MARK: - Jobs

    /// Changes a recording, in memory and, if `isKept`, on the disk. False: it was deleted meanwhile; files written into its folder since are removed.
    func change(_ sid: String, isKept: Bool, _ body: (inout RecordingSummary) -> Void) -> Bool {
        let isThere = state.withLock { state in
            guard var summary = state.summaries[sid] else { return false }
            body(&summary)
            state.summaries[sid] = summary
            return true
        }
        if isKept, isThere { write(sid) }
        return isThere
    }

    /// Removes and returns what `secure` has still to do.
    func consumeUnsecured() -> Set<String> {
        state.withLock { state in
            defer { state.unsecured = [] }
            return state.unsecured
        }
    }

    // MARK: - Limits and figures

    /// Whether the disk has room besides the reserve. Queries the disk: for the recorder's thread.
    func hasRoom() -> Bool {
        guard let free = place.freeBytes else { return true }
        return state.withLock { state in
            state.statistics.freeBytes = free
            return state.reserve.look(free: free)
        }
    }

    /// Whether the disk keeps its reserve after `length` more bytes. Queries the disk.
    func hasRoom(beside length: Int64) -> Bool {
        place.freeBytes.map { $0 - length > configuration.reserveBytes } ?? true
    }

    /// Whether the disk had room at the last check.
    var hadRoom: Bool { state.withLock(\.reserve.hasRoom) }

    func sawQueue(_ bytes: Int) { state.withLock { $0.statistics.queuedBytes = bytes } }

    func sawLag(_ lag: TimeSpan, recordings: Int) {
        recorderLag.report(lag, at: MonotonicClock.now())
        state.withLock { $0.statistics.recordings = recordings }
    }

    func wrote(bytes: UInt64) { state.withLock { $0.statistics.bytesWritten += bytes } }
    func countFinished(_ files: Int) { state.withLock { $0.statistics.filesFinished += UInt64(files) } }
    func countGap() { state.withLock { $0.statistics.gaps += 1 } }
    func countFailure() { state.withLock { $0.statistics.failures += 1 } }
    func countRefusal(_ reason: RecordingRefusal) {
        state.withLock { $0.statistics.tracksRefused[reason, default: 0] += 1 }
    }
}
