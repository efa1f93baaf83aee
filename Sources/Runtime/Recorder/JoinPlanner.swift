import MP4
import NetworkIO
import Primitives
import Recording

/// Plans how the files of a part become one: when each moment of them is shown, and what is copied from where.
struct JoinPlanner {
    private let summary: RecordingSummary
    private let folder: String
    private let decodeLine: @Sendable ([UInt8]) -> LogLine?

    /// Logs of two weeks of sender reports.
    private static let longestLog: Int64 = 128 << 20
    /// In the order in which players choose a track to show.
    private static let sources = ["camera", "microphone", "screen", "screenAudio"]
    /// A file stays open while it is copied.
    private static let mostFiles = 400

    init(_ summary: RecordingSummary, folder: String, decodeLine: @escaping @Sendable ([UInt8]) -> LogLine?) {
        self.summary = summary
        self.folder = folder
        self.decodeLine = decodeLine
    }

    /// The files of a part, and the movie that they become.
    func plan(_ joined: RecordingSummary.JoinedFile) throws(JoinFault) -> (
        files: [RecordingFile], names: [String], streams: [String], JoinedMovie.Plan
    ) {
        let group = RecordingSummary.Group(participant: joined.participant)
        let items = summary.files(of: group, part: joined.part).filter(\.file.isFinished)
        guard items.count <= Self.mostFiles else { throw .tooLarge }
        let placed = places(of: items).sorted { a, b in
            (a.order, a.item.track.participant, a.item.track.sid, a.item.file.startMilliseconds)
                < (b.order, b.item.track.participant, b.item.track.sid, b.item.file.startMilliseconds)
        }
        var movie = JoinedMovie()
        var files: [RecordingFile] = []
        let streams = Dictionary(
            placed.map(\.item.track.sid).enumerated().map { ($0.element, $0.offset) },
            uniquingKeysWith: { first, _ in first })
        do throws(JoinedMovie.Fault) {
            for (item, place, _) in placed {
                guard let file = RecordingFile("\(folder)/\(item.file.name)"), let found = file.movie() else {
                    throw .unreadable
                }
                try movie.append(found, source: files.count, stream: streams[item.track.sid] ?? 0) {
                    place.microseconds(at: $0)
                }
                files.append(file)
            }
            return (files, placed.map(\.item.file.name), placed.map(\.item.track.sid), try movie.plan())
        } catch {
            throw error == .tooLarge ? .tooLarge : .unreadable
        }
    }

    typealias Item = (track: RecordingSummary.Track, file: RecordingSummary.File)

    /// Participants are aligned by when their media arrived, the tracks of one participant by its clock.
    func places(of items: [Item]) -> [(item: Item, place: FilePlace, order: Int)] {
        var placed: [(item: Item, place: FilePlace, order: Int)] = []
        for participant in Set(items.map(\.track.participant)).sorted() {
            let own = items.filter { $0.track.participant == participant }
                .sorted { (order($0), $0.file.startMilliseconds) < (order($1), $1.file.startMilliseconds) }
            let logs = Dictionary(
                Set(own.map(\.track.sid)).map { ($0, runs(of: $0)) }, uniquingKeysWith: { first, _ in first })
            let sids = own.map(\.track.sid)
            let clocked = own.map { item in
                ClockedFile(
                    stream: sids.firstIndex(of: item.track.sid) ?? 0, isAudio: item.track.kind == "audio",
                    clockRate: item.file.clockRate, rtpTime: item.file.rtpTime,
                    duration: (item.file.durationMilliseconds ?? 0) * Int64(item.file.clockRate) / 1_000,
                    arrival: item.file.startMilliseconds * 1_000, reports: reports(of: item, in: logs))
            }
            placed += zip(own, FileAlignment.places(of: clocked)).map { ($0, $1, order($0)) }
        }
        return placed
    }

    // MARK: - Logs

    /// The sender reports of a track, for each time that it was recorded: its RTP times begin anew each time.
    private func runs(of track: String) -> [[(time: Int64, ntp: UInt64)]] {
        guard let log = RecordingFile("\(folder)/\(track).jsonl"), log.length <= Self.longestLog else { return [] }
        var runs: [[(time: Int64, ntp: UInt64)]] = []
        for bytes in log.read(Int(log.length), at: 0).split(separator: UInt8(ascii: "\n")) {
            guard let line = decodeLine(Array(bytes)), let time = line.rtp else { continue }
            if line.type == "start", time == 0 { runs.append([]) }
            guard line.type == "sr", !runs.isEmpty, let ntp = line.ntp.flatMap({ UInt64($0, radix: 16) }) else {
                continue
            }
            runs[runs.count - 1].append((time, ntp))
        }
        return runs
    }

    private func reports(
        of item: Item, in logs: [String: [[(time: Int64, ntp: UInt64)]]]
    ) -> [(time: Int64, ntp: UInt64)] {
        let recorded = summary.tracks.filter { $0.sid == item.track.sid && !$0.files.isEmpty }
        guard let runs = logs[item.track.sid],
            let run = recorded.firstIndex(where: { $0.files.contains { $0.name == item.file.name } }), run < runs.count
        else { return [] }
        return runs[run]
    }

    private func order(_ item: Item) -> Int { Self.sources.firstIndex(of: item.track.source) ?? Self.sources.count }
}
