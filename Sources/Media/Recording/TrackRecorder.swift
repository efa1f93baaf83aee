import MP4
public import MediaControl
import Movies
import PayloadFormats
public import Primitives
import RTP

/// What was recorded of a track so far.
public struct RecordingTotals: Sendable, Hashable {
    /// Frames of video, packets of audio (including silence that fills holes).
    public var framesWritten = 0
    public var framesLost = 0
    public var gaps = 0
    /// Of finished segments.
    public var bytes: Int64 = 0
    /// Finished segments.
    public var segments = 0
    public var lastKeyframe: MonotonicTime?

    /// Nothing.
    public init() {}
}

/// Turns one track's RTP packets into files: order, frames, times, fragments, segments, and a log of what is missing.
///
/// ```text
/// packet ── SequenceOrder ──┬── FrameAssembler ── StreamTimeline ── SegmentBuilder ── write, open, close
///                           ├── AudioAssembler ──┘
///                           └── lost ── up to the next keyframe nothing is stored; the log says what
/// ```
/// Sans-IO: steps are appended for the caller, who has the files.
public struct TrackRecorder: Sendable {
    /// Whether there is a file format for the codec.
    public static func canRecord(_ codec: Codec) -> Bool { codec != .otherAudio }

    private enum Media {
        case none
        case video(VideoTrack)
        case audio(AudioTrack)
    }

    private var order = SequenceOrder()
    private var media = Media.none
    private var segment: Int
    private var lastArrival: MonotonicTime?
    private var isFlushed = true
    /// A sender report that came before the first packet.
    private var earlyAnchor: ClockAnchor?
    private var hasFailed = false
    private let limit: SegmentLimit
    /// What was recorded.
    public private(set) var totals = RecordingTotals()

    /// Nothing arrived for this long: the pending samples go to the disk.
    private static let idle = TimeSpan.seconds(1)

    /// A recorder whose first file has the number `segment`, and whose files are limited by `limit`.
    public init(firstSegment segment: Int = 0, limit: SegmentLimit = .usual) {
        self.segment = segment
        self.limit = limit
        totals.segments = segment
    }

    /// Bytes of all segments.
    public var bytes: Int64 {
        switch media {
        case .none: totals.bytes
        case .video(let track): totals.bytes + track.openBytes
        case .audio(let track): totals.bytes + track.openBytes
        }
    }

    // MARK: - Input

    /// Processes a packet as a subscriber would get it, with the marks of `RecordedStreamFormat`.
    public mutating func receive(_ packet: RawSpan, arrival: MonotonicTime, into steps: inout [RecordingStep]) {
        guard !hasFailed, let header = RTPHeader(packet) else { return }
        lastArrival = arrival
        isFlushed = false
        guard order.insert(header, packet.withUnsafeBytes { Array($0) }, arrival: arrival) else { return }
        drain(at: arrival, into: &steps)
    }

    /// Applies a point of the sender's clock.
    public mutating func receive(_ anchor: ClockAnchor, into steps: inout [RecordingStep]) {
        let stood = noteReport(anchor)
        guard let time = time(of: anchor.timestamp) else {
            earlyAnchor = anchor
            return
        }
        if let stood { steps.append(.log(.clockStep(units: -stood, timestamp: time))) }
        steps.append(.log(.anchor(timestamp: time, ntp: anchor.ntp, arrival: anchor.arrival)))
    }

    /// Packets were dropped before they reached the recorder; the following ones continue the sequence.
    public mutating func noteGap(_ reason: GapReason, at now: MonotonicTime, into steps: inout [RecordingStep]) {
        while let delivery = order.deliverRest() { process(delivery, at: now, &steps) }
        order.restart()
        lose(nil, reason, at: now, &steps)
    }

    /// Time passes: gives up packets that were waited for too long, and writes what is pending if nothing arrives.
    public mutating func advance(to now: MonotonicTime, into steps: inout [RecordingStep]) {
        drain(at: now, into: &steps)
        guard !isFlushed, let lastArrival, now - lastArrival >= Self.idle else { return }
        isFlushed = true
        switch media {
        case .none: break
        case .video(var track):
            track.flush(&steps)
            media = .video(track)
        case .audio(var track):
            track.flush(&steps)
            media = .audio(track)
        }
    }

    /// Nothing more will arrive.
    public mutating func finish(at now: MonotonicTime, into steps: inout [RecordingStep]) {
        while let delivery = order.deliverRest() { process(delivery, at: now, &steps) }
        // A loss before the last packet ends with that packet: a disconnected publisher is detected late.
        endGap(at: lastArrival ?? now, &steps)
        closeSegment(&steps)
    }

    /// Nothing more will arrive, and nothing could be written since the last file was abandoned.
    public mutating func finishAbandoned(at now: MonotonicTime, into steps: inout [RecordingStep]) {
        order.restart()
        lose(nil, .disk, at: now, &steps)
        endGap(at: now, &steps)
    }

    /// Another file shall begin as soon as possible: with the next audio packet or video keyframe.
    public mutating func cut() {
        switch media {
        case .none: break
        case .video(var track):
            track.cut()
            media = .video(track)
        case .audio(var track):
            track.cut()
            media = .audio(track)
        }
    }

    /// The open file cannot be written any more: the following media goes into another one.
    public mutating func abandonSegment() {
        switch media {
        case .none: break
        case .video(var track):
            track.abandonSegment(&totals)
            media = .video(track)
        case .audio(var track):
            track.abandonSegment(&totals)
            media = .audio(track)
        }
    }

    // MARK: - Processing

    private mutating func drain(at now: MonotonicTime, into steps: inout [RecordingStep]) {
        while !hasFailed, let delivery = order.deliver(at: now) { process(delivery, at: now, &steps) }
    }

    private mutating func process(
        _ delivery: SequenceOrder.Delivery, at now: MonotonicTime, _ steps: inout [RecordingStep]
    ) {
        switch delivery {
        case .lost(let sequences): lose(sequences, .loss, at: now, &steps)
        case .packet(let packet):
            do throws(RecordingFault) {
                try append(packet, &steps)
                guard let anchor = earlyAnchor, time(of: anchor.timestamp) != nil else { return }
                earlyAnchor = nil
                receive(anchor, into: &steps)
            } catch {
                closeSegment(&steps)
                hasFailed = true
                steps.append(.fail(error))
            }
        }
    }

    private mutating func append(
        _ packet: SequenceOrder.Packet, _ steps: inout [RecordingStep]
    ) throws(RecordingFault) {
        guard let codec = RecordedStreamFormat.codec(ofPayloadType: packet.header.payloadType),
            Self.canRecord(codec)
        else { throw .codecNotRecordable }
        let bytes = packet.bytes.span.bytes
        let start = packet.header.payloadOffset
        let payload = bytes.extracting(start..<(start + packet.header.payloadLength))
        select(codec, &steps)
        switch media {
        case .none: break
        case .video(var track):
            media = .none
            defer { media = .video(track) }
            try track.append(
                payload, marker: packet.header.marker, timestamp: packet.header.timestamp,
                rotation: Self.rotation(of: packet.header, in: bytes), arrival: packet.arrival, segment: &segment,
                &totals, &steps)
        case .audio(var track):
            media = .none
            defer { media = .audio(track) }
            try track.append(
                payload, codec: codec, timestamp: packet.header.timestamp, arrival: packet.arrival, segment: &segment,
                &totals, &steps)
        }
    }

    /// Prepares for the codec that the publisher sends now.
    private mutating func select(_ codec: Codec, _ steps: inout [RecordingStep]) {
        switch media {
        case .none:
            if codec.kind == .audio {
                media = .audio(AudioTrack(limit: limit))
            } else if let track = VideoTrack(codec, limit: limit) {
                media = .video(track)
            }
        case .video(var track):
            guard track.codec != codec else { return }
            track.change(to: codec, &totals, &steps)
            media = .video(track)
        case .audio: break
        }
    }

    private mutating func lose(
        _ sequences: ClosedRange<Int64>?, _ reason: GapReason, at now: MonotonicTime, _ steps: inout [RecordingStep]
    ) {
        switch media {
        case .none: break
        case .video(var track):
            track.lose(sequences, reason, at: now, &totals, &steps)
            media = .video(track)
        case .audio(var track):
            track.lose(sequences, reason)
            media = .audio(track)
        }
    }

    private mutating func endGap(at moment: MonotonicTime, _ steps: inout [RecordingStep]) {
        switch media {
        case .none: break
        case .video(var track):
            track.endGap(at: moment, &totals, &steps)
            media = .video(track)
        case .audio(var track):
            track.endGap(at: moment, &totals, &steps)
            media = .audio(track)
        }
    }

    private mutating func closeSegment(_ steps: inout [RecordingStep]) {
        switch media {
        case .none: break
        case .video(var track):
            track.close(&totals, &steps)
            media = .video(track)
        case .audio(var track):
            track.close(&totals, &steps)
            media = .audio(track)
        }
    }

    private func time(of timestamp: UInt32) -> Int64? {
        switch media {
        case .none: nil
        case .video(let track): track.time(of: timestamp)
        case .audio(let track): track.time(of: timestamp)
        }
    }

    /// By how much the following media is later because the publisher's media clock stood still; nil if it did not.
    private mutating func noteReport(_ anchor: ClockAnchor) -> Int64? {
        switch media {
        case .none: return nil
        case .video(var track):
            defer { media = .video(track) }
            return track.noteReport(anchor)
        case .audio(var track):
            defer { media = .audio(track) }
            return track.noteReport(anchor)
        }
    }

    private static func rotation(of header: RTPHeader, in packet: RawSpan) -> Rotation? {
        var elements = RTPHeaderExtensions(header)
        while let element = elements.next(in: packet) {
            guard element.id == RecordedStreamFormat.orientationID,
                let orientation = VideoOrientation(element, in: packet)
            else { continue }
            return Rotation(rawValue: orientation.rotation)
        }
        return nil
    }
}
