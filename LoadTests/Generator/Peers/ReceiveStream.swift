import Primitives
import RTP

/// What a sequence number shows about its packet.
enum SequenceVerdict {
    /// The next one, or one after a gap of `missing` numbers.
    case newest(missing: Int)
    /// After a later one, and not seen before.
    case late
    case duplicate
    /// Too far away to be loss: the numbering jumped, and what was `missing` before will no longer arrive.
    case jump(missing: Int)
}

/// One RTP stream as a subscriber receives it: numbering, loss, and where its packets come from.
final class ReceiveStream {
    /// Gaps longer than this are jumps of the numbering, not loss: half a second at 1,000 packets/s.
    static let longestGap: Int64 = 500
    private static let windowBits: Int64 = 2_048

    let ssrc: UInt32
    var payloadType: UInt8
    let format: ReceivedFormat
    private(set) var highest: Int64 = -1
    private var first: Int64 = 0
    /// One bit for each of the last numbers: seen or not.
    private let window: UnsafeMutablePointer<UInt64>

    /// A number that has not arrived yet.
    struct Missing {
        var sequence: Int64
        var since: Int64
        var nextRequest: Int64
        var requests = 0
    }
    var missing: [Missing] = []

    // The source of its packets, once a trace has identified it.
    var source: SendStream?
    /// Sequence number less the source's counter.
    var counterOffset: Int64 = 0
    var timestampOffset: UInt32 = 0
    /// Packets that differ from what their number says, until the frame's trace shows whether the numbering moved.
    var suspects: [(sequence: Int64, payload: [UInt8])] = []
    var assembler: FramePlayer?
    var pictures = PictureNumbers()

    // For reports.
    private(set) var received: UInt32 = 0
    private var expectedBefore: Int64 = 0
    private var receivedBefore: UInt32 = 0
    private var lastTransit: Int64?
    private var jitter: Double = 0
    var lastSenderReport: UInt32 = 0
    var lastSenderReportAt: Int64 = 0
    var lastPictureLoss: Int64 = 0
    var firstPacketAt: Int64

    init(ssrc: UInt32, payloadType: UInt8, format: ReceivedFormat, now: Int64) {
        self.ssrc = ssrc
        self.payloadType = payloadType
        self.format = format
        firstPacketAt = now
        window = .allocate(capacity: Int(Self.windowBits / 64))
        window.initialize(repeating: 0, count: Int(Self.windowBits / 64))
    }

    deinit { window.deallocate() }

    /// Prefetches what the next packet will need.
    func warm() {
        Prefetch.lines(Unmanaged.passUnretained(self).toOpaque(), 256)
        Prefetch.lines(window + (Int(max(0, highest) % Self.windowBits) >> 6), 8)
    }

    /// The extended number nearest to the highest so far.
    func extended(_ number: UInt16) -> Int64 {
        guard highest >= 0 else { return Int64(number) + 0x1_0000 }
        return highest + Int64(Int16(bitPattern: number &- UInt16(truncatingIfNeeded: highest)))
    }

    /// Takes note of number `sequence`.
    func note(_ sequence: Int64, at now: Int64) -> SequenceVerdict {
        guard highest >= 0 else {
            first = sequence
            restart(at: sequence)
            return .newest(missing: 0)
        }
        let ahead = sequence - highest
        if ahead > Self.longestGap || ahead < -Self.windowBits {
            let abandoned = missing.count
            first = sequence - Int64(received)
            restart(at: sequence)
            return .jump(missing: abandoned)
        }
        if ahead <= 0 {
            guard !isSeen(sequence) else { return .duplicate }
            mark(sequence)
            return .late
        }
        for number in (highest + 1)..<sequence {
            clear(number)
            missing.append(Missing(sequence: number, since: now, nextRequest: now))
        }
        highest = sequence
        clear(sequence)
        mark(sequence)
        return .newest(missing: Int(ahead) - 1)
    }

    private func restart(at sequence: Int64) {
        window.update(repeating: 0, count: Int(Self.windowBits / 64))
        missing.removeAll()
        suspects.removeAll()
        highest = sequence
        mark(sequence)
    }

    private func isSeen(_ sequence: Int64) -> Bool {
        window[Int(sequence % Self.windowBits) >> 6] & (1 << UInt64(sequence & 63)) != 0
    }
    private func clear(_ sequence: Int64) {
        window[Int(sequence % Self.windowBits) >> 6] &= ~(1 << UInt64(sequence & 63))
    }
    private func mark(_ sequence: Int64) {
        window[Int(sequence % Self.windowBits) >> 6] |= 1 << UInt64(sequence & 63)
        received &+= 1
    }

    /// Interarrival jitter (RFC 3550 appendix A.8).
    func noteTransit(timestamp: UInt32, at now: Int64) {
        let ticksPerSecond: Int64 = format.isVideo ? 90_000 : 48_000
        let arrival = now / 1_000 * ticksPerSecond / 1_000_000
        let transit = Int64(Int32(truncatingIfNeeded: arrival - Int64(timestamp)))
        defer { lastTransit = transit }
        guard let lastTransit else { return }
        let difference = abs(Int32(truncatingIfNeeded: transit - lastTransit))
        jitter += (Double(difference) - jitter) / 16
    }

    /// A report block for the time since the last one.
    func report(at now: Int64) -> ReportBlock {
        let expected = highest - first + 1
        let expectedNow = expected - expectedBefore
        let receivedNow = Int64(received &- receivedBefore)
        expectedBefore = expected
        receivedBefore = received
        let lost = max(0, expectedNow - receivedNow)
        let fraction = expectedNow > 0 ? min(255, 256 * lost / expectedNow) : 0
        let delay = lastSenderReport == 0 ? 0 : (now - lastSenderReportAt) * 65_536 / 1_000_000_000
        return ReportBlock(
            ssrc: ssrc, fractionLost: UInt8(fraction),
            cumulativeLost: Int32(clamping: expected - Int64(received)),
            highestSequence: UInt32(truncatingIfNeeded: highest - 0x1_0000),
            jitter: UInt32(max(0, jitter)), lastSenderReport: lastSenderReport,
            delaySinceLastSenderReport: UInt32(clamping: delay))
    }
}

/// Checks that VP8's picture ids are consecutive if the packets are.
struct PictureNumbers {
    private var last: (sequence: Int64, picture: UInt16, level: UInt8)?

    /// Notes the first packet of a frame; false if its numbers do not follow those of the previous frame.
    mutating func note(picture: UInt16, level: UInt8, at sequence: Int64) -> Bool {
        defer { last = (sequence, picture, level) }
        guard let last, last.sequence == sequence - 1 else { return true }
        return picture == (last.picture &+ 1) & 0x7fff && level == last.level &+ 1
    }

    /// The frame continues with packet `sequence`.
    mutating func extend(to sequence: Int64) {
        if let last, last.sequence == sequence - 1 { self.last?.sequence = sequence }
    }
}
