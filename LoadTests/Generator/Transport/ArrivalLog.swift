import Primitives
import RTP

/// When packets of one connection arrived, by their transport-wide number, until they are reported to the server.
struct ArrivalLog {
    /// The most arrivals that wait: 250 ms at 16,000 packets/s.
    private static let limit = 4_096
    private var arrivals: [PacketArrival] = []
    private var unwrapper = SequenceUnwrapper()
    private var next: Int64?
    private var feedbackCount: UInt8 = 0
    /// Bytes since the last feedback, which decide how often feedback is sent.
    private var bytes = 0
    private var isSorted = true

    var isEmpty: Bool { arrivals.isEmpty }

    /// Prefetches the place of the next arrival.
    func warm() {
        arrivals.withUnsafeBufferPointer { buffer in
            if let base = buffer.baseAddress { Prefetch.lines(base + buffer.count, 32) }
        }
    }

    mutating func add(_ number: UInt16, bytes count: Int, at time: MonotonicTime) {
        guard arrivals.count < Self.limit else { return }
        let sequence = unwrapper.unwrap(number)
        if let last = arrivals.last, last.sequence >= sequence { isSorted = false }
        arrivals.append(PacketArrival(sequence: sequence, time: time))
        bytes += count
    }

    /// libwebrtc's rule: feedback of about 68 bytes may take 5 % of what arrives, every 50 to 250 ms.
    mutating func interval(since: Int64) -> Int64 {
        guard bytes > 0 else { return 250_000_000 }
        let bitsPerSecond = Double(bytes * 8) * 1e9 / Double(max(1, since))
        bytes = 0
        return Int64(min(250, max(50, 68 * 8 / (0.05 * bitsPerSecond) * 1_000)) * 1e6)
    }

    /// Appends what has arrived by `now` to a compound; false if nothing was written.
    mutating func write(to writer: inout RTCPWriter, sender: UInt32, media: UInt32, now: MonotonicTime) -> Bool {
        if !isSorted {
            arrivals.sort { $0.sequence < $1.sequence }
            isSorted = true
        }
        if let last = arrivals.last, last.time <= now, ascends {
            let taken = append(arrivals, to: &writer, sender: sender, media: media)
            arrivals.removeFirst(taken)
            return taken > 0
        }
        var ready = arrivals
        var rest: [PacketArrival] = []
        if let last = arrivals.last, last.time > now {
            // The scenario's link delivers some of them later than now.
            ready = arrivals.filter { $0.time <= now }
            rest = arrivals.filter { $0.time > now }
        }
        // The numbers must ascend, without duplicates and numbers that were reported before.
        let base = next ?? ready.first?.sequence ?? 0
        ready.removeAll { $0.sequence < base }
        var previous = Int64.min
        ready.removeAll { arrival in
            defer { previous = arrival.sequence }
            return arrival.sequence == previous
        }
        let taken = append(ready, to: &writer, sender: sender, media: media)
        arrivals = Array(ready[taken...]) + rest
        return taken > 0
    }

    /// Whether everything that waits comes after what was reported, without duplicates.
    private var ascends: Bool {
        var previous = (next ?? .min + 1) - 1
        for arrival in arrivals {
            guard arrival.sequence > previous else { return false }
            previous = arrival.sequence
        }
        return true
    }

    /// Writes as much of `ready`, which ascends, as fits; returns how many.
    private mutating func append(
        _ ready: [PacketArrival], to writer: inout RTCPWriter, sender: UInt32, media: UInt32
    ) -> Int {
        guard let first = ready.first else { return 0 }
        var base = next ?? first.sequence
        if first.sequence - base > 1_000 { base = first.sequence }
        let taken = writer.appendTransportFeedback(
            senderSSRC: sender, mediaSSRC: media, feedbackCount: feedbackCount, from: base, arrivals: ready.span)
        if taken > 0 {
            next = ready[taken - 1].sequence + 1
            feedbackCount &+= 1
        }
        return taken
    }
}
