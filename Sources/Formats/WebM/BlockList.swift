import Movies

/// The samples of one track, in the order of its blocks.
struct BlockList: Sendable {
    /// One sample.
    struct Block: Sendable {
        /// Where its bytes are in the file.
        var offset: Int64
        var length: UInt32
        /// By its cluster and itself, in ticks of the file.
        var ticks: Int64
        /// In ticks of the file; nil: up to the next one.
        var duration: UInt64?
        var isSync: Bool
        /// The first byte of it.
        var first: UInt8
        /// For Opus, its duration at 48 kHz; 0: it violates its format.
        var opusSamples = 0
    }

    let entry: TrackEntry
    private let clock: TickClock
    /// Added to each time.
    private let shift: Int64
    private var samples: [MovieSample] = []
    /// When the last block was, in ticks of the file.
    private var lastTicks = Int64.min
    /// The duration in the last block.
    private var lastDuration: Int64?
    /// VP9's profile, from the first frame with which a decoder can start.
    private var profile: UInt8?

    /// Half of the usual duration of Opus packets, so that a missing packet is noticed.
    private static let opusTolerance: Int64 = 480

    /// nil if ticks of `scale` nanoseconds are no usable unit of time.
    init?(_ entry: TrackEntry, scale: UInt64) {
        guard let clock = TickClock(scale: scale, timescale: entry.isOpus ? 48_000 : nil) else { return nil }
        self.entry = entry
        self.clock = clock
        shift = -clock.units(nanoseconds: entry.delay)
    }

    /// How many samples there are.
    var count: Int { samples.count }

    /// Adds a sample; false if its time is invalid.
    mutating func append(_ block: Block) -> Bool {
        guard var time = clock.units(ticks: block.ticks) else { return false }
        time += shift
        if let last = samples.last {
            let next = last.time + Int64(last.duration)
            if last.duration > 0, abs(time - next) < Self.opusTolerance {
                // Ticks are coarse, and live encoders take times from a clock: consecutive packets have no audible gap.
                time = next
            } else if block.ticks >= lastTicks, time <= last.time {
                // Frames within one tick stay separate, in their order. Times go back here only if they do in the file.
                time = last.time + 1
            }
        }
        lastTicks = block.ticks
        let isSync = block.isSync || !entry.isVideo
        if isSync, profile == nil { profile = block.first >> 5 & 1 | block.first >> 3 & 2 }
        lastDuration = block.duration.flatMap { Int64(exactly: $0) }.flatMap { clock.units(ticks: $0) }
        samples.append(
            MovieSample(
                offset: block.offset, time: time, length: block.length, duration: UInt32(block.opusSamples),
                isSync: isSync))
        return true
    }

    /// The track, whose samples last until the next one unless they have a duration.
    func track() -> MovieTrack {
        var format = entry.format
        if case .vp9(_, let size) = format { format = .vp9(profile: profile ?? 0, size) }
        var samples = samples
        for index in samples.indices.dropLast() where samples[index].duration == 0 {
            samples[index].duration = UInt32(clamping: samples[index + 1].time - samples[index].time)
        }
        if let last = samples.indices.last, samples[last].duration == 0 {
            let usual = entry.duration > 0 ? clock.units(nanoseconds: entry.duration) : nil
            let before = last > 0 ? Int64(samples[last - 1].duration) : 0
            samples[last].duration = UInt32(clamping: lastDuration ?? usual ?? before)
        }
        return MovieTrack(
            id: entry.number, isVideo: entry.isVideo, format: format, timescale: clock.timescale, samples: samples,
            shift: shift)
    }
}

/// The ticks of a file (`TimestampScale`) as units of a timescale.
struct TickClock: Sendable {
    /// Units per second.
    let timescale: UInt32
    /// Units per tick.
    private let numerator: Int64
    private let denominator: Int64

    /// A millisecond, unless a file has another value.
    static let usualScale: UInt64 = 1_000_000
    private static let second: UInt64 = 1_000_000_000

    /// Ticks of `scale` nanoseconds, as units of `timescale`. Without a timescale: ticks if a second is a whole number of them, otherwise nanoseconds. nil for
    /// a tick of no time, or of many seconds.
    init?(scale: UInt64, timescale wanted: UInt32? = nil) {
        guard scale > 0 else { return nil }
        timescale = wanted ?? UInt32(Self.second % scale == 0 ? Self.second / scale : Self.second)
        let product = scale.multipliedReportingOverflow(by: UInt64(timescale))
        guard !product.overflow, product.partialValue <= UInt64(Int64.max) else { return nil }
        let isExact = product.partialValue % Self.second == 0
        numerator = Int64(isExact ? product.partialValue / Self.second : product.partialValue)
        denominator = isExact ? 1 : Int64(Self.second)
    }

    /// Rounded down; nil for a time longer than any file: sums of the results stay in range.
    func units(ticks: Int64) -> Int64? {
        let (units, overflow) = ticks.multipliedReportingOverflow(by: numerator)
        return overflow || units.magnitude > 1 << 61 ? nil : units / denominator
    }

    /// Rounded; for at most an hour.
    func units(nanoseconds: UInt64) -> Int64 {
        let seconds = nanoseconds / Self.second, rest = nanoseconds % Self.second
        return Int64(seconds * UInt64(timescale) + (rest * UInt64(timescale) + Self.second / 2) / Self.second)
    }
}
