import Glibc
import MP4
import MediaControl
import Movies
import NetworkIO
import Primitives
import Recording
import Rooms

/// A track that is being recorded: its recorder, its open file and its log. Belongs to the recorder's thread.
final class RecordedTrack {
    /// Reports to the rest of the server.
    enum News {
        case gap(GapReason, milliseconds: Int64)
        case requestKeyframe
        case failed(String)
        /// The disk refuses lines of the log: media continues.
        case logRefused
        /// A file has begun: the summary on the disk must have it.
        case began
        /// A file is finished: the summary on the disk must have that, too.
        case finished
    }

    let recording: String
    let track: TrackID
    private let folder: String
    private let fields: FileNameFields
    private let movesIndexes: Bool
    /// The part to which its next file belongs, if tracks are joined, and the duration and size of a part.
    private var part: Int?
    let groupLimit: SegmentLimit?
    private let started: Int64
    /// Wall clock minus monotonic clock, in milliseconds.
    private let clockOffset: Int64
    private var recorder: TrackRecorder
    private var file: OutputFile?
    /// The name of the file that was opened last.
    private var fileName = ""
    private var log: OutputFile?
    /// The last line was refused, and (`isLogTorn`) part of it may be in the file.
    private var isLogRefused = false
    private var isLogTorn = false
    /// The disk refused a write; the next step tries another file.
    private var brokenUntil: MonotonicTime?
    private var fit = SenderClockFit()
    /// The publisher's clock at the beginning of the last file.
    private var clockStart: SenderClockStart?
    /// What the summary shows.
    private(set) var summary: RecordingSummary.Track
    private var bytesWritten: UInt64 = 0
    private var framesSeen = 0
    private let encode: @Sendable (LogLine) -> [UInt8]

    /// The maximum number of files with the same name, for a template that makes no others: each beyond the first gets a number.
    private static let mostOfOneName = 10_000
    /// The delay after a disk failure.
    private static let retryInterval = TimeSpan.seconds(10)

    init(
        _ info: TrackInfo, track: TrackID, recording: RecordingSummary, folder: String, clockOffset: Int64,
        movesIndexes: Bool, part: Int?, encode: @escaping @Sendable (LogLine) -> [UInt8]
    ) {
        self.recording = recording.sid
        self.track = track
        self.folder = folder
        started = recording.startedAt
        self.clockOffset = clockOffset
        self.encode = encode
        self.movesIndexes = movesIndexes && part == nil
        self.part = part
        groupLimit = part.map { _ in recording.segments }
        // Files that are joined have their names only temporarily.
        fields = FileNameFields(
            recording, template: part == nil ? nil : .usual, participant: info.identity, track: info.sid,
            source: info.source.rawValue)
        summary = RecordingSummary.Track(info)
        // A track that is recorded again has files already.
        recorder = TrackRecorder(
            firstSegment: recording.tracks.filter { $0.sid == info.sid }.reduce(0) { $0 + $1.files.count },
            limit: part == nil
                ? recording.segments
                : SegmentLimit(
                    length: recording.segments.length + recording.segments.length, bytes: recording.segments.bytes))
        // A refusal is tried again, and reported, with the first line.
        log = try? openLog()
    }

    // MARK: - Input

    func receive(_ header: RecordBatch.Header, _ content: [UInt8], at now: MonotonicTime) -> [News] {
        var steps: [RecordingStep] = []
        guard isUsable(at: now, &steps) else { return [] }
        switch header.kind {
        case .packet: recorder.receive(content.span.bytes, arrival: header.arrival, into: &steps)
        case .anchor:
            recorder.receive(
                ClockAnchor(timestamp: header.timestamp, ntp: header.ntp, arrival: header.arrival), into: &steps)
        case .gap: recorder.noteGap(.overload, at: header.arrival, into: &steps)
        case .ended: return []
        }
        return carryOut(steps, at: now)
    }

    func advance(to now: MonotonicTime) -> [News] {
        var steps: [RecordingStep] = []
        guard brokenUntil == nil else { return [] }
        recorder.advance(to: now, into: &steps)
        return carryOut(steps, at: now)
    }

    /// Nothing more arrives.
    func finish(at now: MonotonicTime) -> [News] {
        var steps: [RecordingStep] = []
        if brokenUntil == nil {
            recorder.finish(at: now, into: &steps)
        } else {
            recorder.finishAbandoned(at: now, into: &steps)
        }
        var news = carryOut(steps, at: now)
        secureLog(&news)
        summary.ended = true
        return news
    }

    private func isUsable(at now: MonotonicTime, _ steps: inout [RecordingStep]) -> Bool {
        guard let until = brokenUntil else { return true }
        guard now >= until else { return false }
        brokenUntil = nil
        recorder.noteGap(.disk, at: now, into: &steps)
        return true
    }

    // MARK: - Parts

    /// Whether it is writing a file.
    var isOpen: Bool { file != nil }

    /// Frames that were written since the last call.
    func consumeFrames() -> Int {
        defer { framesSeen = summary.framesWritten }
        return summary.framesWritten - framesSeen
    }

    /// Requests that another file begin as soon as possible.
    func cut() { recorder.cut() }

    /// What follows belongs to another part, and so does the current file (`isThere`).
    func move(toPart next: Int, isThere: Bool) {
        part = next
        if isThere, let last = summary.files.indices.last {
            summary.files[last].part = next
        } else {
            recorder.cut()
        }
    }

    // MARK: - Steps

    private func carryOut(_ steps: [RecordingStep], at now: MonotonicTime) -> [News] {
        var news: [News] = []
        do throws(SystemError) {
            for step in steps { try carryOut(step, &news) }
        } catch {
            // Whole fragments stay; the rest of this step's bytes is lost, with those that follow until the next try.
            news.append(.failed(error.code == ENOSPC ? "disk_full" : "disk_error"))
            try? finishFile(&news)
            recorder.abandonSegment()
            brokenUntil = now + Self.retryInterval
        }
        summary.framesWritten = recorder.totals.framesWritten
        summary.framesLost = recorder.totals.framesLost
        return news
    }

    private func carryOut(_ step: RecordingStep, _ news: inout [News]) throws(SystemError) {
        switch step {
        case .open(let segment): try openFile(segment)
        case .write(let write):
            guard file != nil else { return }
            try file?.write(write.bytes, at: write.offset)
            bytesWritten += UInt64(write.bytes.count)
            if let last = summary.files.indices.last {
                summary.files[last].bytes = max(
                    summary.files[last].bytes ?? 0, write.offset + Int64(write.bytes.count))
            }
        case .close: try finishFile(&news)
        case .log(let note): apply(note, &news)
        case .requestKeyframe: news.append(.requestKeyframe)
        case .fail(let fault):
            summary.fault = fault.rawValue
            news.append(.failed(fault.rawValue))
        }
    }

    /// Opens a file under a unique name.
    private func openFile(_ segment: Int) throws(SystemError) {
        let wanted = fields.name(segment: segment, at: MonotonicClock.wallMilliseconds())
        for number in 1...Self.mostOfOneName {
            fileName = (number == 1 ? wanted : "\(wanted)-\(number)") + ".mp4"
            do throws(SystemError) {
                file = try openOutput(fileName, isNew: true)
                return
            } catch {
                guard error.code == EEXIST else { throw error }
            }
        }
        throw SystemError("open", code: EEXIST)
    }

    /// Opens a file in the recording's folder, which is created again if it is missing: the disk may have refused it when the recording began.
    private func openOutput(_ name: String, isNew: Bool) throws(SystemError) -> OutputFile {
        do throws(SystemError) {
            return try OutputFile("\(folder)/\(name)", isNew: isNew, appends: !isNew)
        } catch {
            guard error.code == ENOENT else { throw error }
        }
        try RecordingFolder(folder).make(folder)
        return try OutputFile("\(folder)/\(name)", isNew: isNew, appends: !isNew)
    }

    private func finishFile(_ news: inout [News]) throws(SystemError) {
        guard file != nil else { return }
        defer { file = nil }
        // A file that could not be finished has no samples in the summary: finishing is tried again when the recording ends, after that, and at the next start.
        if let last = summary.files.indices.last { summary.files[last].isUnfinished = true }
        let content = try file?.finish()
        if let last = summary.files.indices.last {
            summary.files[last].isUnfinished = nil
            summary.files[last].bytes = file?.length
            // The contents on the disk: less than was recorded if the disk cut it short.
            if let content { summary.files[last].note(content) }
            if movesIndexes, summary.files[last].isFinished { summary.files[last].index = .pending }
        }
        news.append(.finished)
    }

    /// Stops a track for which the disk has no room.
    func fail(_ reason: String, at now: MonotonicTime) -> [News] {
        var news = finish(at: now)
        summary.fault = reason
        news.append(.failed(reason))
        return news
    }

    /// Bytes that were written since the last call.
    func consumeBytesWritten() -> UInt64 {
        defer { bytesWritten = 0 }
        return bytesWritten
    }

    // MARK: - The log

    private func apply(_ note: RecordingNote, _ news: inout [News]) {
        var line = LogLine(note, clockOffset: clockOffset)
        switch note {
        case .began(_, let codec, let rate, let time, let arrival):
            // Size and rotation are logged when they change: a file without such lines has those of the file before.
            let former = summary.files.last
            summary.files.append(
                RecordingSummary.File(
                    name: fileName, codec: codec.name,
                    startMilliseconds: wall(arrival) - started, rtpTime: time, clockRate: Int(rate),
                    width: former?.width, height: former?.height, rotation: former?.rotation ?? 0, part: part))
            clockStart = SenderClockStart(at: time, clockRate: Int(rate), after: fit)
            showClockStart()
            news.append(.began)
        case .anchor(let time, let ntp, _):
            fit.add(time: time, ntp: ntp)
            if clockStart?.add(time: time, ntp: ntp) == true { showClockStart() }
        case .gap(let gap):
            summary.gapCount += 1
            if summary.gaps.count < RecordingSummary.Track.maximumGaps { summary.gaps.append(self.gap(gap)) }
            news.append(.gap(gap.reason, milliseconds: gap.milliseconds))
        case .size(let size, _):
            guard let last = summary.files.indices.last else { break }
            summary.files[last].width = size.width
            summary.files[last].height = size.height
        case .rotation(let rotation, _):
            if let last = summary.files.indices.last { summary.files[last].rotation = rotation.rawValue }
        case .clockStep:
            fit = SenderClockFit()
            clockStart?.mediaClockStepped()
        case .levelExceeded: summary.levelExceeded = true
        // The summary's values come from the finished file.
        case .ended: break
        }
        line.track = summary.sid
        writeDown(line, &news)
    }

    /// Appends a line. If the disk refuses it, the line is omitted, and the media loses nothing.
    private func writeDown(_ line: LogLine, _ news: inout [News]) {
        let end = [UInt8(ascii: "\n")]
        do throws(SystemError) {
            // The disk may have refused the log when the track began: it lacks what happened before.
            if log == nil { log = try openLog() }
            let start = isLogTorn ? end : []
            isLogTorn = true
            try log?.append(start + encode(line) + end)
            (isLogRefused, isLogTorn) = (false, false)
        } catch {
            log = nil
            if !isLogRefused { news.append(.logRefused) }
            isLogRefused = true
        }
    }

    /// Syncs the log: files are joined by the publisher's clock in it, which may happen after a power loss.
    private func secureLog(_ news: inout [News]) {
        do throws(SystemError) {
            try log?.synchronize()
        } catch {
            news.append(.logRefused)
        }
    }

    private func openLog() throws(SystemError) -> OutputFile { try openOutput("\(summary.sid).jsonl", isNew: false) }

    private func showClockStart() {
        guard let last = summary.files.indices.last else { return }
        summary.files[last].senderMicroseconds = clockStart?.microseconds
    }

    private func gap(_ gap: RecordingGap) -> RecordingSummary.Gap {
        let file = summary.files.last
        let rate = Int64(file?.clockRate ?? 90_000)
        let since = (gap.from - (file?.rtpTime ?? gap.from)) * 1_000 / rate
        return RecordingSummary.Gap(
            reason: gap.reason.rawValue, atMilliseconds: (file?.startMilliseconds ?? 0) + since,
            milliseconds: gap.milliseconds, packets: gap.packets, frames: gap.frames,
            firstSequence: gap.sequences?.lowerBound, lastSequence: gap.sequences?.upperBound)
    }

    private func wall(_ moment: MonotonicTime) -> Int64 { moment.milliseconds + clockOffset }
}

extension RecordingSummary.Track {
    /// A track without any recorded media yet.
    init(_ info: TrackInfo) {
        self.init(
            sid: info.sid, participant: info.participant, identity: info.identity, name: info.name,
            source: info.source.rawValue, kind: info.kind.rawValue)
    }
}

extension Codec {
    /// The words of logs and the API.
    var name: String {
        switch self {
        case .opus: "opus"
        case .red: "red"
        case .vp8: "vp8"
        case .vp9: "vp9"
        case .h264: "h264"
        case .av1: "av1"
        case .otherAudio: "other"
        }
    }
}
