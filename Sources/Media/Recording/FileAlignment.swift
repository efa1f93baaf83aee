/// A file of a participant, and what its publisher's clock showed meanwhile.
public struct ClockedFile: Sendable {
    /// Identifies what continues from file to file: the files of one track have the same value.
    public var stream: Int
    /// Whether it is audio, which is played as it is.
    public var isAudio: Bool
    /// Units of the RTP clock per second.
    public var clockRate: Int
    /// RTP time of its first sample, and its length.
    public var rtpTime: Int64
    public var duration: Int64
    /// When its first sample had arrived, in microseconds.
    public var arrival: Int64
    /// Sender reports of its track, in order; `time` is their RTP time.
    public var reports: [(time: Int64, ntp: UInt64)]

    /// A file.
    public init(
        stream: Int, isAudio: Bool, clockRate: Int, rtpTime: Int64, duration: Int64, arrival: Int64,
        reports: [(time: Int64, ntp: UInt64)]
    ) {
        self.stream = stream
        self.isAudio = isAudio
        self.clockRate = clockRate
        self.rtpTime = rtpTime
        self.duration = duration
        self.arrival = arrival
        self.reports = reports
    }
}

/// When each moment of a file is shown on a timeline that it shares with others.
public struct FilePlace: Sendable, Hashable {
    private struct Knot: Sendable, Hashable {
        var time: Int64
        var microseconds: Int64
    }

    private let knots: [Knot]
    private let clockRate: Int64

    /// A file in which no moment is moved: it begins at microsecond `start`.
    init(start: Int64, clockRate: Int) {
        knots = [Knot(time: 0, microseconds: start)]
        self.clockRate = Int64(clockRate)
    }

    /// A file with these moments, the first of which is its beginning.
    init(_ moments: [(time: Int64, microseconds: Int64)], clockRate: Int) {
        precondition(!moments.isEmpty, "a file begins at some moment")
        knots = moments.map { Knot(time: $0.time, microseconds: $0.microseconds) }
        self.clockRate = Int64(clockRate)
    }

    /// When the sample is shown that is `time` units after the file's first.
    public func microseconds(at time: Int64) -> Int64 {
        var low = 0, high = knots.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if knots[middle].time <= time { low = middle } else { high = middle }
        }
        let knot = knots[low]
        guard high < knots.count else { return knot.microseconds + (time - knot.time) * 1_000_000 / clockRate }
        let next = knots[high]
        return knot.microseconds + (time - knot.time) * (next.microseconds - knot.microseconds)
            / (next.time - knot.time)
    }
}

/// Puts the files of one participant on one timeline, by its sender reports.
///
/// One track is the reference: its files are placed where they arrived and are played unchanged. Each moment of the other tracks is shown together with the
/// reference's media of the same moment on the publisher's clock. A video follows the reference's clock in this way for its whole length; audio is aligned only
/// at its beginning, because it cannot be stretched.
public enum FileAlignment {
    /// The distance between the moments that are examined.
    private static let step: Int64 = 5_000_000
    /// The most by which a video is stretched or shortened: nobody sees 5 ms in a second.
    private static let slew: (numerator: Int64, denominator: Int64) = (5, 1_000)
    /// A publisher's clock that places a file this far from where it arrived is not trusted.
    public static let longestDelay: Int64 = 5_000_000

    /// The places of `files`, in their order.
    public static func places(of files: [ClockedFile]) -> [FilePlace] {
        let curves = files.map { SenderClockCurve($0) }
        guard let reference = reference(files, curves) else { return [] }
        let guides = files.indices.filter { files[$0].stream == reference }.compactMap { index in
            curves[index].map { Guide(file: files[index], curve: $0, start: files[index].arrival) }
        }
        func place(_ index: Int, _ others: [Guide] = []) -> FilePlace {
            let file = files[index]
            guard file.stream != reference, let curve = curves[index], !guides.isEmpty else {
                return FilePlace(start: file.arrival, clockRate: file.clockRate)
            }
            return self.place(file, curve, guides, others)
        }
        // Once the reference has ended, for example because another microphone was chosen, a video follows the audio that exists then.
        let audio = files.indices.filter { files[$0].isAudio && files[$0].stream != reference }.map { ($0, place($0)) }
        let others = audio.compactMap { index, place in
            curves[index].map { Guide(file: files[index], curve: $0, start: place.microseconds(at: 0)) }
        }
        let placed = Dictionary(audio, uniquingKeysWith: { first, _ in first })
        return files.indices.map { placed[$0] ?? place($0, others) }
    }

    /// Audio before video, and files with reports before files without.
    private static func reference(_ files: [ClockedFile], _ curves: [SenderClockCurve?]) -> Int? {
        let indices = files.indices
        let best =
            indices.first { files[$0].isAudio && curves[$0] != nil } ?? indices.first { curves[$0] != nil }
            ?? indices.first
        return best.map { files[$0].stream }
    }

    private static func place(
        _ file: ClockedFile, _ curve: SenderClockCurve, _ guides: [Guide], _ others: [Guide]
    ) -> FilePlace {
        let rate = Int64(file.clockRate)
        var moments: [(time: Int64, microseconds: Int64)] = []
        var time: Int64 = 0
        while true {
            let nominal = time * 1_000_000 / rate
            // Where the guides place it, nearest to where it would be without them.
            let expected = moments.last.map { $0.microseconds + (time - $0.time) * 1_000_000 / rate } ?? file.arrival
            let sender = curve.microseconds(at: file.rtpTime + time)
            guard let found = moment(sender, near: expected, guides, others) else { break }
            if let last = moments.last {
                let most = (nominal - last.time * 1_000_000 / rate) * slew.numerator / slew.denominator
                moments.append((time, min(max(found, expected - most), expected + most)))
            } else {
                guard abs(found - file.arrival) <= longestDelay else { break }
                moments.append((time, found))
            }
            guard !file.isAudio, time < file.duration else { break }
            time = min(time + step * rate / 1_000_000, file.duration)
        }
        return moments.isEmpty
            ? FilePlace(start: file.arrival, clockRate: file.clockRate) : FilePlace(moments, clockRate: file.clockRate)
    }

    /// When media of the guides is shown that is as old as `sender` on the publisher's clock: by the guide that was recorded then, or, if there is none, by one
    /// of `others`. Extrapolating the clock of another file would be off by as much as media clocks drift in an hour.
    private static func moment(
        _ sender: Int64, near expected: Int64, _ guides: [Guide], _ others: [Guide]
    ) -> Int64? {
        let own = guides.map { $0.moment(sender, near: expected) }
        let all = own.contains { $0.outside == 0 } ? own : own + others.map { $0.moment(sender, near: expected) }
        // The publisher's clock may have shown the same time twice.
        return all.min { $0.outside + abs($0.moment - expected) < $1.outside + abs($1.moment - expected) }?.moment
    }

    /// A file in its place, which others follow.
    private struct Guide {
        let file: ClockedFile
        let curve: SenderClockCurve
        /// When its first sample is shown, in microseconds.
        let start: Int64

        /// When the file's media is shown that is as old as `sender` on the publisher's clock, and how far before its first or after its last sample that is.
        func moment(_ sender: Int64, near expected: Int64) -> (moment: Int64, outside: Int64) {
            let rate = Int64(file.clockRate)
            let about = file.rtpTime + (expected - start) * rate / 1_000_000
            let time = curve.time(of: sender, near: about)
            let moment = start + (time - file.rtpTime) * 1_000_000 / rate
            return (moment, max(0, start - moment, moment - start - file.duration * 1_000_000 / rate))
        }
    }
}
