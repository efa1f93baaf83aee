public import MP4
public import MediaControl
public import Movies
public import Primitives

/// What a `TrackRecorder` requests, in order.
public enum RecordingStep: Sendable, Hashable {
    /// A new file, number `segment` of the track from 0 on.
    case open(segment: Int)
    /// Bytes of the open file.
    case write(FileWrite)
    /// The open file is completely written: finish it.
    case close
    /// A line of the track's log.
    case log(RecordingNote)
    /// Nothing can be recorded before a keyframe: ask the publisher for one.
    case requestKeyframe
    /// Nothing more of the track can be recorded.
    case fail(RecordingFault)
}

/// Why a track cannot be recorded. `rawValue` is the stable name in logs, events and the API.
public enum RecordingFault: String, Error, Sendable, Hashable, CaseIterable {
    /// No file format for the codec here.
    case codecNotRecordable = "codec_not_recordable"
    /// The media is encrypted end to end.
    case endToEndEncrypted = "e2ee"
    /// Frames are sent in another order than they are shown, with more frames in between than the recorder holds back.
    case reorderingUnsupported = "reordering_unsupported"
    /// It has as many files as a track may have: its publisher changes the form of the media continually.
    case tooManyFiles = "too_many_files"
}

/// Why something is missing. `rawValue` is the stable name in logs, events and the API.
public enum GapReason: String, Sendable, Hashable, CaseIterable {
    /// Packets did not arrive.
    case loss
    /// The recorder did not keep up.
    case overload
    /// The disk refused a write.
    case disk
    /// A frame needed parameter sets that came without a keyframe, or a keyframe needed another file too soon after the last ones began.
    case format
}

/// A part of the track that is missing.
public struct RecordingGap: Sendable, Hashable {
    public var reason: GapReason
    /// The first and last missing sequence number, as the recorder counts them; nil if packets were not counted.
    public var sequences: ClosedRange<Int64>?
    /// The RTP time of the last media before the gap and of the first media after it, as the recorder counts it.
    public var from: Int64
    public var to: Int64
    /// Packets that are missing.
    public var packets: Int
    /// For video: frames that arrived but could not be used because of the gap, and an estimate of those of which nothing arrived: no more than the missing
    /// packets, and no more than fit into the gap at the track's frame rate. For audio: packets of silence written in place of the missing ones.
    public var frames: Int
    /// Length in milliseconds.
    public var milliseconds: Int64

    /// More is missing, and this reason applies from now on.
    mutating func add(_ more: ClosedRange<Int64>?, _ reason: GapReason) {
        self.reason = reason
        guard let more else { return }
        packets += more.count
        sequences = min(sequences?.lowerBound ?? more.lowerBound, more.lowerBound)...more.upperBound
    }
}

/// A point of the sender's clock: its RTP time and its NTP time, from a sender report.
public struct ClockAnchor: Sendable, Hashable {
    /// RTP timestamp in the recorded stream.
    public var timestamp: UInt32
    /// The publisher's wall clock, 32.32 fixed point seconds since 1900.
    public var ntp: UInt64
    /// When the report arrived.
    public var arrival: MonotonicTime

    /// A point.
    public init(timestamp: UInt32, ntp: UInt64, arrival: MonotonicTime) {
        self.timestamp = timestamp
        self.ntp = ntp
        self.arrival = arrival
    }
}

/// One line of a track's log.
public enum RecordingNote: Sendable, Hashable {
    /// A segment begins with a sample of this RTP time, which arrived then, or was due if a later packet brought it.
    case began(segment: Int, codec: Codec, clockRate: UInt32, timestamp: Int64, arrival: MonotonicTime)
    /// A sender report.
    case anchor(timestamp: Int64, ntp: UInt64, arrival: MonotonicTime)
    case gap(RecordingGap)
    /// Video of another size from this RTP time on.
    case size(VideoSize, timestamp: Int64)
    /// The video is to be turned from this RTP time on.
    case rotation(Rotation, timestamp: Int64)
    /// The publisher's timestamps jumped by this many units, or (below zero) stood still for as many; arrival times or its wall clock were followed instead.
    case clockStep(units: Int64, timestamp: Int64)
    /// The video has more samples per second or per frame than the level in its parameter set permits.
    case levelExceeded(level: UInt8, size: VideoSize)
    /// A segment is complete.
    case ended(segment: Int, samples: Int, bytes: Int64, duration: Int64)
}
