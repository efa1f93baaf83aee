internal import Movies
public import Primitives
internal import RTP

/// Turns samples of one track into RTP packets, and counts for its sender reports.
public struct TrackPacketizer: Sendable {
    /// The stream's SSRC.
    public let ssrc: UInt32
    private let payloadType: UInt8
    private var payload: Payload
    private var sequence: UInt16
    private let timestampBase: UInt32
    private var packets: UInt32 = 0
    private var octets: UInt32 = 0
    private var lastReport: MonotonicTime?

    /// Sender reports are this far apart.
    private static let reportInterval = TimeSpan.seconds(1)
    private static let cname = Array("martlet".utf8)

    private enum Payload {
        case h264(H264Packetizer)
        case vp8(VP8Packetizer)
        case vp9(VP9Packetizer)
        case av1(AV1Packetizer)
        case opus
    }

    /// A packetizer whose first numbers come from `random`.
    public init(_ track: PlayableTrack, ssrc: UInt32, payloadType: UInt8, random: inout RandomSource) {
        self.ssrc = ssrc
        self.payloadType = payloadType
        sequence = UInt16(truncatingIfNeeded: random.next())
        timestampBase = UInt32(truncatingIfNeeded: random.next())
        let pictureID = UInt16(truncatingIfNeeded: random.next())
        switch track.format {
        case .h264(let lengthSize, let sequenceSets, let pictureSets, _):
            payload = .h264(H264Packetizer(lengthSize: lengthSize, sequenceSets + pictureSets))
        case .vp8: payload = .vp8(VP8Packetizer(pictureID: pictureID))
        case .vp9: payload = .vp9(VP9Packetizer(pictureID: pictureID))
        case .av1(_, let configuration, _): payload = .av1(AV1Packetizer(configuration))
        case .opus: payload = .opus
        case .other: preconditionFailure("a playable track has a codec with a payload format")
        }
    }

    /// Replaces the content of `list` by the packets of a sample; false, and no packets, if the sample violates its format.
    public mutating func packetize(
        _ sample: UnsafeRawBufferPointer, isSync: Bool, timestamp: UInt32, into list: inout PacketList
    ) -> Bool {
        list.removeAll()
        var header = Header(
            payloadType: payloadType, timestamp: timestamp &+ timestampBase, ssrc: ssrc, sequence: sequence)
        let isWhole: Bool
        switch payload {
        case .h264(var packetizer):
            isWhole = packetizer.append(sample, &header, &list)
            payload = .h264(packetizer)
        case .vp8(var packetizer):
            isWhole = packetizer.append(sample, &header, &list)
            payload = .vp8(packetizer)
        case .vp9(var packetizer):
            isWhole = packetizer.append(sample, isSync: isSync, &header, &list)
            payload = .vp9(packetizer)
        case .av1(let packetizer): isWhole = packetizer.append(sample, isSync: isSync, &header, &list)
        case .opus: isWhole = OpusPacketizer.append(sample, &header, &list)
        }
        guard isWhole, list.count > 0 else {
            list.removeAll()
            return false
        }
        if case .opus = payload {} else { list.markLast() }
        sequence = header.sequence
        packets &+= UInt32(list.count)
        octets &+= UInt32(truncatingIfNeeded: list.bytes.count - PacketList.headerLength * list.count)
        return true
    }

    /// The sender report that accompanies a sample due at `due`, once per second; nil in between. `isLast` adds a BYE, because the stream pauses.
    public mutating func report(due: MonotonicTime, timestamp: UInt32, isLast: Bool = false) -> [UInt8]? {
        if let lastReport, due - lastReport < Self.reportInterval, !isLast { return nil }
        lastReport = due
        return withUnsafeTemporaryAllocation(byteCount: 128, alignment: 8) { buffer in
            var writer = RTCPWriter(buffer)
            writer.beginSenderReport(
                ssrc: ssrc, ntpTimestamp: NTPTime.at(due), rtpTimestamp: timestamp &+ timestampBase,
                packetCount: packets, octetCount: octets)
            writer.appendSourceDescription(ssrc: ssrc, cname: Self.cname)
            if isLast { writer.appendGoodbye([ssrc]) }
            return Array(buffer[..<writer.length])
        }
    }
}

/// What the packets of one sample have in common, and the next sequence number.
struct Header {
    let payloadType: UInt8
    private var timestamp: UInt32
    let ssrc: UInt32
    private(set) var sequence: UInt16

    init(payloadType: UInt8, timestamp: UInt32, ssrc: UInt32, sequence: UInt16) {
        self.payloadType = payloadType
        self.timestamp = timestamp
        self.ssrc = ssrc
        self.sequence = sequence
    }

    /// Begins a packet (RFC 3550 section 5.1).
    mutating func begin(_ list: inout PacketList) {
        list.append(0x80)
        list.append(payloadType)
        list.append(UInt8(truncatingIfNeeded: sequence >> 8))
        list.append(UInt8(truncatingIfNeeded: sequence))
        for shift in stride(from: UInt32(24), through: 0, by: -8) {
            list.append(UInt8(truncatingIfNeeded: timestamp >> shift))
        }
        for shift in stride(from: UInt32(24), through: 0, by: -8) {
            list.append(UInt8(truncatingIfNeeded: ssrc >> shift))
        }
        sequence &+= 1
    }

    /// The following samples are later by this many units of the RTP clock.
    mutating func advance(by units: UInt32) { timestamp &+= units }
}
