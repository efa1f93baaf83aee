import Primitives

/// A part of a message, for one DATA chunk.
struct Fragment {
    /// Shared with every other receiver of the message.
    var payload: [UInt8]
    var range: Range<Int>
    var stream: UInt16, sequence: UInt16
    var identifier: UInt32
    /// Distinguishes messages of one association.
    var message: Int64
    var isOrdered: Bool
    var reliability: DataReliability
    var queuedAt: MonotonicTime

    var isFirst: Bool { range.lowerBound == 0 }
    var isLast: Bool { range.upperBound == payload.count }

    /// Whether the message must not be transmitted any more (RFC 3758 section 3.5), after this many transmissions.
    func isExpired(transmissions: Int, at now: MonotonicTime) -> Bool {
        switch reliability {
        case .reliable: false
        case .retransmissions(let most): transmissions > most
        case .lifetime(let time): now - queuedAt > time
        }
    }
}

/// Messages that have not been sent yet: one queue per stream, served in turn message by message; DCEP goes first, or a channel would open only after the
/// messages queued on others.
///
/// ```text
/// stream 1  ■ ■ ■ ──┐
/// stream 3  ■ ──────┼──► one whole message at a time ──► fragments
/// stream 5  ■ ■ ────┘    (fragments of two messages must not mix without RFC 8260)
/// ```
struct SendQueue {
    /// Bounds. Lossy: messages of channels that are not reliable.
    struct Limits: Sendable, Hashable {
        /// Reliable bytes that wait or are unacknowledged.
        var reliableBytes = 1_048_576
        var lossyBytes = 262_144
        var messages = 4_096
        /// A lossy message that waits longer is useless to its receiver; 100 ms is what other servers allow.
        var lossyAge = TimeSpan.milliseconds(100)
        /// This many lossy bytes may wait however old they are: a burst of a few messages is no queue.
        var lossyFloor = 8_192
    }

    private struct Stream {
        var id: UInt16
        var nextSequence: UInt16 = 0
        var messages: [Fragment] = []
        var head = 0

        var isEmpty: Bool { head == messages.count }

        mutating func removeFirst() -> Fragment {
            let message = messages[head]
            messages[head].payload = []
            head += 1
            if head == messages.count {
                messages = []
                head = 0
            } else if head >= 64, head * 2 >= messages.count {
                messages.removeFirst(head)
                head = 0
            }
            return message
        }
    }

    /// Maximum waiting DCEP messages: some for each channel. This many, by themselves, do not make a peer congested.
    private static let mostControl = 256

    private let limits: Limits
    private var streams: [Stream] = []
    private var turn = 0
    /// The message being sent, with the range that remains of it; its sequence number is assigned.
    private var current: Fragment?
    private var control: [Fragment] = []
    private var nextMessage: Int64 = 0
    private(set) var reliableBytes = 0, lossyBytes = 0, count = 0
    /// Lossy messages that were dropped before they were sent.
    private(set) var dropped = 0

    init(limits: Limits) { self.limits = limits }

    var isEmpty: Bool { count == 0 && current == nil }

    /// Bytes of a stream that wait.
    func bytes(of stream: UInt16) -> Int {
        let waiting = streams.first { $0.id == stream }.map {
            $0.messages[$0.head...].reduce(0) { $0 + $1.range.count }
        }
        return (waiting ?? 0) + (current?.stream == stream ? current?.range.count ?? 0 : 0)
    }

    /// Whether nothing of the stream waits.
    func isIdle(_ stream: UInt16) -> Bool {
        current?.stream != stream && !control.contains { $0.stream == stream }
            && streams.first { $0.id == stream }?.isEmpty ?? true
    }

    /// Appends a message; false for a reliable one that does not fit next to `unacknowledged` bytes in flight. For a lossy one, older ones are dropped.
    mutating func append(
        _ payload: [UInt8], stream: UInt16, identifier: UInt32, isOrdered: Bool, reliability: DataReliability,
        unacknowledged: Int, at now: MonotonicTime
    ) -> Bool {
        let message = Fragment(
            payload: payload, range: 0..<payload.count, stream: stream, sequence: 0, identifier: identifier,
            message: nextMessage, isOrdered: isOrdered, reliability: reliability, queuedAt: now)
        if reliability == .reliable {
            guard count < limits.messages, reliableBytes + unacknowledged + payload.count <= limits.reliableBytes
            else { return false }
            reliableBytes += payload.count
        } else {
            dropStale(at: now)
            while lossyBytes > 0, lossyBytes + payload.count > limits.lossyBytes || count >= limits.messages {
                guard dropOldest() else { break }
            }
            guard payload.count <= limits.lossyBytes, count < limits.messages else {
                dropped += 1
                return true
            }
            lossyBytes += payload.count
        }
        nextMessage += 1
        count += 1
        let index = place(of: stream)
        streams[index].messages.append(message)
        return true
    }

    /// Whether another DCEP message fits. A peer can provoke them without receiving any.
    var takesControl: Bool { control.count < Self.mostControl }

    /// Appends a DCEP message, which precedes all others; only if `takesControl`.
    mutating func appendControl(_ payload: [UInt8], stream: UInt16, identifier: UInt32, at now: MonotonicTime) {
        control.append(
            Fragment(
                payload: payload, range: 0..<payload.count, stream: stream, sequence: 0, identifier: identifier,
                message: nextMessage, isOrdered: true, reliability: .reliable, queuedAt: now))
        nextMessage += 1
        count += 1
        reliableBytes += payload.count
    }

    private mutating func place(of stream: UInt16) -> Int {
        if let index = streams.firstIndex(where: { $0.id == stream }) { return index }
        streams.append(Stream(id: stream))
        return streams.count - 1
    }

    /// Cuts the next fragment of at most `room` bytes; nil when nothing waits, or when so little room is not worth a fragment.
    mutating func next(room: Int, at now: MonotonicTime) -> Fragment? {
        if current == nil { current = nextWhole(at: now) }
        guard var message = current else { return nil }
        let rest = message.range.count
        guard rest <= room || room >= PacketSize.largestFragment / 2 else { return nil }
        let length = min(rest, room)
        var fragment = message
        fragment.range = message.range.lowerBound..<(message.range.lowerBound + length)
        count(message, -length)
        message.range = fragment.range.upperBound..<message.range.upperBound
        if message.range.isEmpty {
            current = nil
        } else {
            current = message
        }
        return fragment
    }

    /// The next message by turns, with its sequence number.
    private mutating func nextWhole(at now: MonotonicTime) -> Fragment? {
        if !control.isEmpty {
            let message = control.removeFirst()
            return numbered(message, at: place(of: message.stream))
        }
        dropStale(at: now)
        for _ in streams.indices {
            turn = (turn + 1) % streams.count
            guard !streams[turn].isEmpty else { continue }
            return numbered(streams[turn].removeFirst(), at: turn)
        }
        return nil
    }

    private mutating func numbered(_ message: Fragment, at index: Int) -> Fragment {
        var message = message
        count -= 1
        guard message.isOrdered else { return message }
        message.sequence = streams[index].nextSequence
        streams[index].nextSequence &+= 1
        return message
    }

    /// Drops the rest of the message that is being sent, if it is this one; true if there was a rest.
    mutating func abandon(_ message: Int64) -> Bool {
        guard let current, current.message == message else { return false }
        count(current, -current.range.count)
        self.current = nil
        return true
    }

    /// Drops the messages that wait on a stream, except one whose first part was sent.
    mutating func clear(_ stream: UInt16) {
        guard let index = streams.firstIndex(where: { $0.id == stream }) else { return }
        while !streams[index].isEmpty { remove(at: index) }
    }

    /// The stream begins again with sequence number 0.
    mutating func reset(_ stream: UInt16) {
        clear(stream)
        streams.removeAll { $0.id == stream }
        turn = 0
    }

    // MARK: - Lossy messages

    /// Drops lossy messages that have waited for too long, oldest first, above the floor.
    private mutating func dropStale(at now: MonotonicTime) {
        while lossyBytes > limits.lossyFloor, let index = oldestLossy,
            now - streams[index].messages[streams[index].head].queuedAt > limits.lossyAge
        {
            remove(at: index)
            dropped += 1
        }
    }

    private mutating func dropOldest() -> Bool {
        guard let index = oldestLossy else { return false }
        remove(at: index)
        dropped += 1
        return true
    }

    private mutating func remove(at index: Int) {
        let message = streams[index].removeFirst()
        count(message, -message.range.count)
        count -= 1
    }

    /// The stream with the oldest lossy message at its head.
    private var oldestLossy: Int? {
        var oldest: Int?, number = Int64.max
        for index in streams.indices where !streams[index].isEmpty {
            let message = streams[index].messages[streams[index].head]
            if message.reliability != .reliable, message.message < number {
                number = message.message
                oldest = index
            }
        }
        return oldest
    }

    private mutating func count(_ message: Fragment, _ bytes: Int) {
        if message.reliability == .reliable { reliableBytes += bytes } else { lossyBytes += bytes }
    }
}
