import Recorder

/// A file of a composition with several videos, each of which is copied into a temporary file while the composition is made.
///
/// ffmpeg seeks in all tracks of a file by the keyframes of its first video. After the end of that video it starts there, and decodes everything since: if
/// somebody left after a minute, each scene of an hour's recording would decode the hour.
struct SharedFile: Hashable {
    /// Its name.
    var name: String
    /// The name of the file for each of its videos, by their numbers in it.
    var targets: [Int: String]

    /// All shared files of a timeline. Names of new files begin with `prefix`.
    static func all(of timeline: RecordingTimeline, prefix: String) -> [SharedFile] {
        let videos = timeline.parts.filter(\.isVideo)
        let names = Set(videos.map(\.file)).filter { name in videos.count { $0.file == name } > 1 }.sorted()
        return names.enumerated().map { number, name in
            let streams = videos.filter { $0.file == name }.map(\.stream)
            return SharedFile(
                name: name,
                targets: Dictionary(
                    streams.map { ($0, "\(prefix).video.\(number).\($0).mp4") }, uniquingKeysWith: { first, _ in first }
                ))
        }
    }

    /// The timeline with its videos in separate files, which begin this many microseconds after it.
    func replaced(in timeline: RecordingTimeline, _ starts: [Int: Int64]) -> RecordingTimeline {
        RecordingTimeline(
            timeline.parts.map { part in
                guard part.isVideo, part.file == name, let target = targets[part.stream],
                    let start = starts[part.stream]
                else { return part }
                var own = part
                (own.file, own.stream) = (target, 0)
                own.start += Int64(Double(start) * part.stretch)
                own.length -= start
                return own
            })
    }
}
