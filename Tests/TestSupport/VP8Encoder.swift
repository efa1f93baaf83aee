/// A stream of VP8 frames in RTP packets. Its numbers count as an encoder's do, with all fields of the descriptor; behind the heads is filler.
public struct VP8Encoder {
    public var ssrc: UInt32
    /// Under id 4 in every packet, if there is one.
    public var mid: String?
    /// Under id 5 in every packet, if there is one.
    public var rid: String?
    /// Under id 7 in the last packet of each frame, if there is one.
    public var orientation: UInt8?
    public var sequence: UInt16
    public var timestamp: UInt32
    public var pictureID: UInt16
    public var temporalZero: UInt8
    public var keyIndex: UInt8
    public var width: UInt16
    public var height: UInt16
    /// Bytes of a packet after its heads, where a frame has no other.
    public var filler: Int
    /// Whether a frame came before: otherwise the next one has the numbers that are set, and the one after it counts on.
    private var isRunning: Bool

    public init(
        ssrc: UInt32, mid: String? = nil, rid: String? = nil, sequence: UInt16 = 100, timestamp: UInt32 = 50_000,
        pictureID: UInt16 = 300, temporalZero: UInt8 = 10, keyIndex: UInt8 = 3, width: UInt16 = 640,
        height: UInt16 = 360, filler: Int = 200, isRunning: Bool = false
    ) {
        (self.ssrc, self.mid, self.rid) = (ssrc, mid, rid)
        (self.sequence, self.timestamp) = (sequence, timestamp)
        (self.pictureID, self.temporalZero, self.keyIndex) = (pictureID, temporalZero, keyIndex)
        (self.width, self.height) = (width, height)
        (self.filler, self.isRunning) = (filler, isRunning)
    }

    /// The packets of the next frame, `ticks` after the last; `sizes` are those of their payloads, in place of `packets` and `filler`.
    public mutating func frame(
        keyframe: Bool = false, ticks: UInt32 = 3_000, packets: Int = 3, filler: Int? = nil, sizes: [Int]? = nil
    ) -> [[UInt8]] {
        if isRunning {
            timestamp &+= ticks
            pictureID = (pictureID + 1) & 0x7fff
            temporalZero &+= 1
        }
        isRunning = true
        if keyframe { keyIndex = (keyIndex + 1) & 0x1f }
        let count = sizes?.count ?? packets
        return (0..<count).map { part in
            var payload = VP8Frame.descriptor(
                startsFrame: part == 0, pictureID: pictureID, temporalZero: temporalZero, keyIndex: keyIndex)
            if part == 0 {
                payload += keyframe ? VP8Frame.keyframeHeader(width: width, height: height) : VP8Frame.deltaHeader
            }
            let rest = sizes.map { $0[part] - payload.count } ?? filler ?? self.filler
            payload += [UInt8](repeating: UInt8(part + 1), count: rest)
            return packet(payload, isLast: part == count - 1).bytes
        }
    }

    /// A packet of padding only, which uses up a sequence number; `length` with its last byte, which counts it.
    public mutating func padding(_ length: Int = 4) -> [UInt8] {
        var packet = packet([], isLast: false)
        packet.padding = length
        return packet.bytes
    }

    private mutating func packet(_ payload: [UInt8], isLast: Bool) -> TestPacket {
        defer { sequence &+= 1 }
        var extensions: [(UInt8, [UInt8])] = []
        if let mid { extensions.append((4, Array(mid.utf8))) }
        if let rid { extensions.append((5, Array(rid.utf8))) }
        if let orientation, isLast { extensions.append((7, [orientation])) }
        return TestPacket(
            ssrc: ssrc, sequence: sequence, timestamp: timestamp, marker: isLast, payload: payload,
            extensions: extensions)
    }
}
