internal import MediaControl
internal import Primitives
internal import RTP

/// When each packet of one transport came, for feedback to its sender
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01): all SSRCs together, retransmissions and padding included.
///
/// ```text
///   times[n & mask]     told |  to be told        | newest
///   ... t t t - t t t t t t t | t t - t t t - t t t t |
///                             ^ base                  ^ highest
/// ```
/// A packet that comes after later ones have been told moves `base` back, so that its number is told again with its time;
/// senders take the first word about a packet that came.
struct TransportFeedbackRecorder: ~Copyable {
    /// Numbers remembered; a power of two. 250 ms (the longest interval) at 4,000 packets/s, some 36 Mbit/s, and as many
    /// again for late ones.
    static let capacity: Int64 = 2048
    /// Arrivals handed to the writer at once.
    static let chunk = 128
    /// Told at the latest when so many wait, however short ago the last feedback was.
    static let flush: Int64 = 512
    /// Senders' estimators want an answer within a frame or two; less often than 280 ms slows their start.
    static let shortest = TimeInterval.milliseconds(50)
    static let longest = TimeInterval.milliseconds(100)
    static let longestOnBudget = TimeInterval.milliseconds(280)
    /// IPv4 and UDP headers and the SRTCP trailer of a feedback packet on its own.
    private static let overheadBytes: Int64 = 28 + 20

    /// Nanoseconds, 0 where nothing came; made with the first packet that carries a number.
    private var times: UnsafeMutablePointer<Int64>?
    private var unwrapper = SequenceUnwrapper()
    private var base: Int64 = 0
    private var highest: Int64 = -1
    private var feedbackCount: UInt8 = 0
    private var mediaSSRC: UInt32 = 0
    private var lastSent = MonotonicTime.zero
    private var interval = shortest
    /// Bits a second that feedback may cost; nil: 5 % of what comes in.
    private var budget: Int64?
    private var packetsSinceSent: Int64 = 0
    private var bytesSinceSent: Int64 = 0
    /// When feedback is due; never while nothing waits.
    private(set) var nextDue = MonotonicTime.distantFuture

    deinit { times?.deallocate() }

    /// A publish-only peer's downlink is to be next to nothing: 5 kbit/s with its reports.
    mutating func setBudget(_ profile: PeerProfile) { budget = profile == .publishOnly ? 3_300 : nil }

    /// The packet with transport-wide number `number` came.
    @inline(__always) mutating func record(_ number: UInt16, mediaSSRC: UInt32, at now: MonotonicTime) {
        self.mediaSSRC = mediaSSRC
        let sequence = unwrapper.unwrap(number)
        if times == nil { begin(at: sequence, now) }
        guard let times else { return }
        if sequence > highest {
            if sequence - highest >= Self.capacity {
                restart(at: sequence)
            } else if sequence > highest + 1 {
                for skipped in (highest + 1)..<sequence { times[Int(skipped & (Self.capacity - 1))] = 0 }
            }
            highest = sequence
        } else if sequence <= highest - Self.capacity {
            return
        }
        if sequence < base { base = sequence }
        if highest - base >= Self.capacity { base = highest - Self.capacity + 1 }
        times[Int(sequence & (Self.capacity - 1))] = max(now.nanoseconds, 1)
        packetsSinceSent &+= 1
        if nextDue == .distantFuture { nextDue = max(now, lastSent + interval) }
        if highest - base >= Self.flush { nextDue = min(nextDue, now) }
    }

    private mutating func begin(at sequence: Int64, _ now: MonotonicTime) {
        let made = UnsafeMutablePointer<Int64>.allocate(capacity: Int(Self.capacity))
        made.initialize(repeating: 0, count: Int(Self.capacity))
        times = made
        base = sequence
        highest = sequence - 1
        // The first answer comes soon: it starts the sender's estimator.
        lastSent = now - interval + .milliseconds(20)
    }

    private mutating func restart(at sequence: Int64) {
        times?.update(repeating: 0, count: Int(Self.capacity))
        base = sequence
    }

    /// Appends the feedback that is due; false when it needs another datagram.
    mutating func write(_ writer: inout RTCPWriter, senderSSRC: UInt32, at now: MonotonicTime) -> Bool {
        guard now >= nextDue else { return true }
        while base <= highest {
            let lengthBefore = writer.length
            guard let told = append(&writer, senderSSRC: senderSSRC) else { return false }
            bytesSinceSent += Int64(writer.length - lengthBefore)
            feedbackCount &+= 1
            base = told + 1
        }
        adaptInterval(at: now)
        lastSent = now
        nextDue = .distantFuture
        return true
    }

    /// Appends one feedback from `base` on; the last number told, or nil when there is no room.
    private func append(_ writer: inout RTCPWriter, senderSSRC: UInt32) -> Int64? {
        guard let times else { return nil }
        // In registers and on the stack: a temporary allocation of this size would come from the heap.
        var arrivals = InlineArray<128, PacketArrival>(repeating: PacketArrival(sequence: 0, time: .zero))
        var count = 0, sequence = base
        while sequence <= highest, count < Self.chunk {
            let time = times[Int(sequence & (Self.capacity - 1))]
            if time != 0 {
                arrivals[count] = PacketArrival(sequence: sequence, time: MonotonicTime(nanoseconds: time))
                count += 1
            }
            sequence += 1
        }
        let taken = writer.appendTransportFeedback(
            senderSSRC: senderSSRC, mediaSSRC: mediaSSRC, feedbackCount: feedbackCount, from: base,
            arrivals: arrivals.span.extracting(0..<count))
        return taken == 0 ? nil : arrivals[taken - 1].sequence
    }

    /// The next distance, so that the feedback's own rate keeps to its budget: 50 to 100 ms, and up to 280 ms for a peer
    /// whose downlink is to be kept quiet.
    private mutating func adaptInterval(at now: MonotonicTime) {
        let elapsed = max(now - lastSent, Self.shortest)
        let bits = (bytesSinceSent + Self.overheadBytes) * 8
        // 5 % of the uplink, taking 1,000 bytes a packet: what libwebrtc's receivers spend.
        let allowance = budget ?? max(packetsSinceSent * 8_000 * 1_000_000_000 / elapsed.nanoseconds / 20, 1)
        let wanted = TimeInterval(nanoseconds: bits * 1_000_000_000 / allowance)
        interval = min(max(wanted, Self.shortest), budget == nil ? Self.longest : Self.longestOnBudget)
        packetsSinceSent = 0
        bytesSinceSent = 0
    }
}
