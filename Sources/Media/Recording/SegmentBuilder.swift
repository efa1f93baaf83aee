import MP4
import Movies
public import Primitives

/// When a file of a track is long or large enough: another one continues with the next keyframe or audio packet.
public struct SegmentLimit: Sendable, Hashable {
    /// Length of a file.
    public var length: TimeSpan
    /// Bytes of a file.
    public var bytes: Int64
    /// Samples of a file: 5.2 hours of Opus in packets of 10 ms.
    var samples = SegmentLimit.mostSamples

    /// The server's own reader takes two million samples (`MovieFile.maximumSamples`), and another file begins only with a keyframe: a twentieth is left for
    /// the samples before it.
    private static let mostSamples = MovieFile.maximumSamples / 20 * 19

    /// An hour, and what fits every file system and every player's 32-bit arithmetic.
    public static let usual = SegmentLimit(length: .seconds(3_600), bytes: 2 << 30)

    /// Files of at most `length` and `bytes`, except for the samples before the next keyframe.
    public init(length: TimeSpan, bytes: Int64) {
        self.length = length
        self.bytes = bytes
    }
}

/// Collects samples into the fragments of one file. A sample is written when the next one is known, so that every duration is exact.
struct SegmentBuilder {
    /// A fragment ends after this time at the latest: a crash loses no more.
    static let longestFragment = TimeSpan.seconds(1)
    /// A fragment ends with this many bytes or samples, whatever its length: a publisher whose timestamps do not advance must not fill the memory. This is
    /// several times as much as a second of 4K video or of the shortest Opus packets has, and yields a header that `MovieScan` accepts.
    static let largestFragment = 4 << 20
    static let mostFragmentSamples = 1_024

    private let rate: Int64
    private let limit: SegmentLimit
    private var isCut = false
    private var writer = FragmentWriter()
    private var samples: [Sample] = []
    private var data: [UInt8] = []
    private var fragmentStart: Int64 = 0
    private var pending: (bytes: [UInt8], time: Int64, offset: Int32, isSync: Bool, duration: UInt32)?
    private(set) var sampleCount = 0
    /// The last interval between two samples: the best guess for the last sample's.
    private var lastDuration: UInt32
    /// Decode time of the next sample at the earliest.
    private var earliest: Int64 = 0

    /// Bytes of finished fragments.
    var bytes: Int64 { writer.length }
    /// The decode time after the last sample.
    private(set) var end: Int64 = 0

    /// Begins a file; `usualDuration` is the duration of a last sample if nothing else is known.
    init(_ format: TrackFormat, usualDuration: UInt32, limit: SegmentLimit, _ steps: inout [RecordingStep]) {
        rate = Int64(format.entry.timescale)
        self.limit = limit
        lastDuration = usualDuration
        steps.append(.write(writer.begin(format)))
    }

    /// Whether another file should begin with the next sync sample.
    var isFull: Bool {
        isCut || sampleCount >= limit.samples || writer.length >= limit.bytes
            || earliest * 1_000 / rate >= limit.length.nanoseconds / 1_000_000
    }

    /// Whether no further sample fits, sync or not: a publisher that sends no keyframe for this long must not create a file that the server itself cannot read.
    var isExhausted: Bool { sampleCount >= limit.samples + limit.samples / 20 }

    /// Another file shall begin, however small this one is.
    mutating func cut() { isCut = true }

    /// Adds a sample with the decode time `time`, which is moved after the last one if it is not later. `duration`: that of audio, which is known.
    mutating func append(
        _ bytes: [UInt8], time wanted: Int64, compositionOffset: Int32 = 0, isSync: Bool, duration: UInt32 = 0,
        _ steps: inout [RecordingStep]
    ) {
        let time = max(wanted, earliest)
        if var last = pending {
            // A video frame lasts until the next one, audio has its own length.
            if last.duration == 0 {
                last.duration = UInt32(clamping: time - last.time)
                // A pause reveals nothing about the frame rate.
                if Int64(last.duration) < rate { lastDuration = last.duration }
            }
            commit(last)
        }
        let isLong = (time - fragmentStart) >= Self.longestFragment.nanoseconds / 1_000_000 * rate / 1_000
        // Every fragment of a video begins with a keyframe or continues after a second.
        let isLarge = data.count >= Self.largestFragment || samples.count >= Self.mostFragmentSamples
        if !samples.isEmpty, isLong || isLarge || (isSync && duration == 0) || time != end { cut(&steps) }
        if samples.isEmpty { fragmentStart = time }
        pending = (bytes, time, compositionOffset, isSync, duration)
        earliest = time + max(1, Int64(duration))
    }

    private mutating func commit(
        _ sample: (bytes: [UInt8], time: Int64, offset: Int32, isSync: Bool, duration: UInt32)
    ) {
        if samples.isEmpty { fragmentStart = sample.time }
        samples.append(
            Sample(
                duration: sample.duration, size: UInt32(sample.bytes.count), compositionOffset: sample.offset,
                isSync: sample.isSync))
        data.append(contentsOf: sample.bytes)
        end = sample.time + Int64(sample.duration)
        sampleCount += 1
        pending = nil
    }

    private mutating func cut(_ steps: inout [RecordingStep]) {
        guard !samples.isEmpty else { return }
        for write in writer.append(samples, data: data, decodeTime: UInt64(fragmentStart)) {
            steps.append(.write(write))
        }
        samples.removeAll(keepingCapacity: true)
        data.removeAll(keepingCapacity: true)
    }

    /// Writes everything that is pending: nothing arrives for now, or nothing will arrive any more.
    mutating func flush(_ steps: inout [RecordingStep]) {
        if var last = pending {
            if last.duration == 0 { last.duration = lastDuration }
            commit(last)
            earliest = max(earliest, end)
        }
        cut(&steps)
    }
    /// Writes the rest, and ends the file.
    mutating func close(_ totals: inout RecordingTotals, _ steps: inout [RecordingStep]) {
        flush(&steps)
        totals.bytes += bytes
        steps.append(
            .log(.ended(segment: totals.segments, samples: sampleCount, bytes: bytes, duration: end)))
        steps.append(.close)
        totals.segments += 1
    }
}
