internal import MediaControl
internal import Primitives
internal import RTP

/// Arrival times of the packets of one transport, for feedback to its sender
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01): all SSRCs together, retransmissions and padding included.
///
/// ```text
///   times[n & mask]  reported | to report          | newest
///   ... t t t - t t t t t t t | t t - t t t - t t t t |
///                             ^ base                  ^ highest
/// ```
/// A packet that arrives after later ones were reported moves `base` back, so that its number is reported again with its time;
/// senders use the first report of a packet's arrival.
struct TransportFeedbackRecorder: ~Copyable {
    /// Numbers remembered; a power of two. 250 ms (the longest interval) at 4,000 packets/s, some 36 Mbit/s, and as many
    /// again for late ones.
    static let capacity: Int64 = 2048
    /// Arrivals passed to the writer at once.
    static let chunk = 128
    /// Feedback is sent as soon as this many packets wait, however recent the last feedback was.
    static let flush: Int64 = 512
    /// Senders' estimators need an answer within a frame or two; intervals above 280 ms slow their start.
    static let shortest = TimeSpan.milliseconds(50)
    static let longest = TimeSpan.milliseconds(100)
    static let longestOnBudget = TimeSpan.milliseconds(280)
    /// IPv4 and UDP headers and the SRTCP trailer of a separate feedback packet.
    private static let overheadBytes: Int64 = 28 + 20

    /// Nanoseconds, 0 where nothing arrived; allocated with the first packet that carries a number.
    private var times: UnsafeMutablePointer<Int64>?
    private var unwrapper = SequenceUnwrapper()
    private var base: Int64 = 0
    private var highest: Int64 = -1
    private var feedbackCount: UInt8 = 0
    private var mediaSSRC: UInt32 = 0
    private var lastSent = MonotonicTime.zero
    private var interval = shortest
    /// Bits per second that feedback may use; nil: 5 % of the received bitrate.
    private var budget: Int64?
    private var packetsSinceSent: Int64 = 0
    private var bytesSinceSent: Int64 = 0
    /// When feedback is due; never while nothing waits.
    private(set) var nextDue = MonotonicTime.distantFuture

    deinit { times?.deallocate() }

    /// Keeps the downlink of a publish-only peer minimal: 5 kbit/s with its reports.
    mutating func setBudget(_ profile: PeerProfile) { budget = profile == .publishOnly ? 3_300 : nil }

    /// Records the arrival of the packet with transport-wide number `number`.
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
        // Send the first answer soon: it starts the sender's estimator.
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
            guard let reported = append(&writer, senderSSRC: senderSSRC) else { return false }
            bytesSinceSent += Int64(writer.length - lengthBefore)
            feedbackCount &+= 1
            base = reported + 1
        }
        adaptInterval(at: now)
        lastSent = now
        nextDue = .distantFuture
        return true
    }

    /// Appends one feedback packet from `base` on; returns the last number reported, or nil when there is no room.
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

    /// Sets the next interval so that the feedback's own rate keeps to its budget: 50 to 100 ms, and up to 280 ms for a
    /// publish-only peer.
    private mutating func adaptInterval(at now: MonotonicTime) {
        let elapsed = max(now - lastSent, Self.shortest)
        let bits = (bytesSinceSent + Self.overheadBytes) * 8
        // 5 % of the uplink, assuming 1,000 bytes per packet: what libwebrtc's receivers spend.
        let allowance = budget ?? max(packetsSinceSent * 8_000 * 1_000_000_000 / elapsed.nanoseconds / 20, 1)
        let wanted = TimeSpan(nanoseconds: bits * 1_000_000_000 / allowance)
        interval = min(max(wanted, Self.shortest), budget == nil ? Self.longest : Self.longestOnBudget)
        packetsSinceSent = 0
        bytesSinceSent = 0
    }
}
