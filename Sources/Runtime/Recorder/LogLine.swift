import MP4
import Movies
import Primitives
import Recording

/// One line of a track's log. Absent members do not apply to its type. Times are in units of the RTP clock, from the track's first sample.
public struct LogLine: Codable, Sendable, Hashable {
    /// `start`, `sr`, `gap`, `size`, `rotation`, `clockStep`, `level` or `end`.
    public var type: String
    var track: String?
    var segment: Int?
    var codec: String?
    var clockRate: Int?
    var rtp: Int64?
    var rtpEnd: Int64?
    /// 32.32 fixed point seconds since 1900, in hexadecimal.
    var ntp: String?
    /// Milliseconds since 1970.
    var arrival: Int64?
    var reason: String?
    var firstSequence: Int64?
    var lastSequence: Int64?
    var packets: Int?
    var frames: Int?
    var milliseconds: Int64?
    var width: Int?
    var height: Int?
    var rotation: Int?
    var step: Int64?
    var level: Int?
    var samples: Int?
    var bytes: Int64?

    private init(type: String) { self.type = type }

    init(_ note: RecordingNote, clockOffset: Int64) {
        switch note {
        case .began(let segment, let codec, let rate, let time, let arrival):
            self.init(type: "start")
            self.segment = segment
            self.codec = codec.name
            clockRate = Int(rate)
            rtp = time
            self.arrival = arrival.milliseconds + clockOffset
        case .anchor(let time, let ntp, let arrival):
            self.init(type: "sr")
            rtp = time
            self.ntp = String(ntp, radix: 16)
            self.arrival = arrival.milliseconds + clockOffset
        case .gap(let gap):
            self.init(type: "gap")
            reason = gap.reason.rawValue
            firstSequence = gap.sequences?.lowerBound
            lastSequence = gap.sequences?.upperBound
            (rtp, rtpEnd) = (gap.from, gap.to)
            (packets, frames, milliseconds) = (gap.packets, gap.frames, gap.milliseconds)
        case .size(let size, let time):
            self.init(type: "size")
            (width, height, rtp) = (size.width, size.height, time)
        case .rotation(let rotation, let time):
            self.init(type: "rotation")
            (self.rotation, rtp) = (rotation.rawValue, time)
        case .clockStep(let units, let time):
            self.init(type: "clockStep")
            (step, rtp) = (units, time)
        case .levelExceeded(let level, let size):
            self.init(type: "level")
            (self.level, width, height) = (Int(level), size.width, size.height)
        case .ended(let segment, let samples, let bytes, let duration):
            self.init(type: "end")
            (self.segment, self.samples, self.bytes, rtpEnd) = (segment, samples, bytes, duration)
        }
    }
}
