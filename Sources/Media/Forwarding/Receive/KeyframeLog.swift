internal import PayloadFormats
public import Primitives

/// The position of a layer's last keyframe in its history.
public struct KeyframePosition: Sendable, Hashable {
    /// Extended sequence number of its first packet, parameter sets of the same timestamp included.
    public var firstSequence: Int64
    /// Its extended timestamp.
    public var timestamp: Int64
    /// When its first packet arrived.
    public var arrival: MonotonicTime
}

/// The position of one layer's last keyframe.
struct KeyframeLog {
    /// The last keyframe; nil before the first.
    private(set) var last: KeyframePosition?
    /// Some of `last` itself has arrived, and not only its parameter sets.
    private var isCertain = false
    /// The newest packet that a mute dropped: no subscription can start with a keyframe that reaches back to it.
    private var droppedUpTo: Int64 = .min

    /// Where a keyframe begins, as far as it has arrived.
    struct Start {
        var sequence: Int64
        /// The start of a keyframe that was not known; otherwise an earlier packet of a known one has arrived.
        var isNew: Bool
        /// Some of the keyframe itself has arrived. Until then there are only H.264 parameter sets, which senders also repeat ahead of other frames (GStreamer
        /// at an interval).
        var isCertain: Bool
    }

    /// Records the position of a keyframe; returns the start of a new one, or of one that begins earlier than was known.
    mutating func note(_ record: PacketRecord, in history: borrowing PacketHistory) -> Start? {
        guard record.summary.isKeyframe || record.summary.startsKeyframe else {
            // The keyframe begins with a late earlier packet, or with its parameter sets.
            guard let last, last.timestamp == record.timestamp else { return nil }
            return beginEarlier(with: record, in: history)
        }
        if let last, last.timestamp == record.timestamp {
            let earlier = beginEarlier(with: record, in: history)
            guard !isCertain, record.summary.isKeyframe else { return earlier }
            isCertain = true
            return Start(sequence: earlier?.sequence ?? last.firstSequence, isNew: true, isCertain: true)
        }
        if let last, record.sequence < last.firstSequence { return nil }
        guard record.sequence > droppedUpTo else { return nil }
        let first = Self.firstSequence(of: record, in: history)
        last = KeyframePosition(firstSequence: first, timestamp: record.timestamp, arrival: record.arrival)
        isCertain = record.summary.isKeyframe
        return Start(sequence: first, isNew: true, isCertain: isCertain)
    }

    private mutating func beginEarlier(with record: PacketRecord, in history: borrowing PacketHistory) -> Start? {
        guard let last, record.sequence < last.firstSequence else { return nil }
        let first = Self.firstSequence(of: record, in: history)
        self.last?.firstSequence = first
        return Start(sequence: first, isNew: false, isCertain: isCertain)
    }

    /// The first packet with the timestamp of `record`: parameter sets precede the frame under the same timestamp.
    private static func firstSequence(of record: PacketRecord, in history: borrowing PacketHistory) -> Int64 {
        var first = record.sequence
        while let before = history.record(first - 1), before.pointee.timestamp == record.timestamp { first -= 1 }
        return first
    }

    /// A packet was dropped because the track is muted.
    mutating func dropped(_ sequence: Int64) { droppedUpTo = max(droppedUpTo, sequence) }

    /// The track is muted: nothing can start with a keyframe whose successors were dropped.
    mutating func forget() { last = nil }

    /// Numbering restarted.
    mutating func restart() { droppedUpTo = .min }
}
