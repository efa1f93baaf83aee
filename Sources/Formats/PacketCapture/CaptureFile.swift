/// Writes a packet capture that Wireshark opens: pcapng (draft-ietf-opsawg-pcapng), one interface of raw IP packets, in memory.
///
/// The packets never crossed a wire in this form: what a peer sent and received encrypted is written in clear text, with artificial IPv4 and UDP headers.
public struct CaptureFile: Sendable {
    /// One packet of RTP or RTCP.
    public struct Packet {
        /// Nanoseconds since 1970.
        public var time: Int64
        /// From the server to the client.
        public var isSent: Bool
        public var isRTCP: Bool
        /// Which of the client's connections, from 0.
        public var connection: Int
        /// Bytes that the packet had.
        public var length: Int

        /// A packet; its bytes are passed separately.
        public init(time: Int64, isSent: Bool, isRTCP: Bool, connection: Int, length: Int) {
            self.time = time
            self.isSent = isSent
            self.isRTCP = isRTCP
            self.connection = connection
            self.length = length
        }
    }

    /// The server and the client: documentation addresses (RFC 5737), so that a capture that is passed on reveals nobody's address.
    static let server: UInt32 = 0xc633_6401, client: UInt32 = 0xc000_0201
    /// RTP has an even port and RTCP the next one (RFC 3550 section 11), although both shared one, so that no reader takes one for the other.
    static let serverPort = 5_004, firstClientPort = 40_000

    /// The file so far.
    public private(set) var bytes: [UInt8] = []
    /// Packets in the file.
    public private(set) var packets = 0

    /// A file without packets, made by `application`; `comment` describes it.
    public init(application: String, comment: String) {
        block(0x0a0d_0d0a) { file in
            file.append(UInt32(0x1a2b_3c4d))
            file.append(UInt16(1))
            file.append(UInt16(0))
            // The length of the section is not known yet.
            file.append(UInt64.max)
            file.option(1, Array(comment.utf8))
            file.option(4, Array(application.utf8))
            file.endOptions()
        }
        block(1) { file in
            // LINKTYPE_RAW: each packet begins with an IP header.
            file.append(UInt16(101))
            file.append(UInt16(0))
            file.append(UInt32(0))
            // if_tsresol: times count nanoseconds.
            file.option(9, [9])
            file.endOptions()
        }
    }

    /// Bytes that a packet of which `kept` are kept adds at most.
    public static func size(keeping kept: Int) -> Int { 48 + 28 + kept + 3 }

    /// Adds a packet of which `kept` is left; the rest was truncated.
    public mutating func append(_ packet: Packet, kept: some Collection<UInt8>) {
        let headers = Self.headers(of: packet)
        let captured = headers.count + kept.count
        block(6) { file in
            file.append(UInt32(0))
            file.append(UInt32(truncatingIfNeeded: packet.time >> 32))
            file.append(UInt32(truncatingIfNeeded: packet.time))
            file.append(UInt32(captured))
            file.append(UInt32(headers.count + packet.length))
            file.bytes += headers
            file.bytes += kept
            file.pad()
            // epb_flags: inbound 1, outbound 2.
            file.option(2, [packet.isSent ? 2 : 1, 0, 0, 0])
            file.endOptions()
        }
        packets += 1
    }

    /// Ends the file with the number of packets that it lacks, as of `time` in nanoseconds since 1970.
    public mutating func finish(dropped: UInt64, time: Int64) {
        block(5) { file in
            file.append(UInt32(0))
            file.append(UInt32(truncatingIfNeeded: time >> 32))
            file.append(UInt32(truncatingIfNeeded: time))
            // isb_ifdrop
            file.option(5, (0..<8).map { UInt8(truncatingIfNeeded: dropped >> (8 * $0)) })
            file.endOptions()
        }
    }

    // MARK: - Headers

    /// IPv4 (RFC 791 section 3.1) and UDP (RFC 768), in network order.
    private static func headers(of packet: Packet) -> [UInt8] {
        let rtcp = packet.isRTCP ? 1 : 0
        let (clientPort, serverPort) = (firstClientPort + 2 * packet.connection + rtcp, serverPort + rtcp)
        let (source, destination) = packet.isSent ? (server, client) : (client, server)
        let (sourcePort, destinationPort) = packet.isSent ? (serverPort, clientPort) : (clientPort, serverPort)
        var header: [UInt8] = []
        func word(_ value: Int) { header += [UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)] }
        word(0x4500)
        word(28 + packet.length)
        // No identification, and not to be fragmented.
        word(0)
        word(0x4000)
        // 64 hops left, UDP.
        word(0x4011)
        word(0)
        for address in [source, destination] {
            word(Int(address >> 16))
            word(Int(address & 0xffff))
        }
        var sum = 0
        for at in stride(from: 0, to: 20, by: 2) { sum += Int(header[at]) << 8 | Int(header[at + 1]) }
        let checksum = ~((sum & 0xffff) + sum >> 16)
        header[10] = UInt8(truncatingIfNeeded: checksum >> 8)
        header[11] = UInt8(truncatingIfNeeded: checksum)
        word(sourcePort)
        word(destinationPort)
        word(8 + packet.length)
        // No checksum: the truncated part is unknown.
        word(0)
        return header
    }

    // MARK: - Blocks

    /// A block has its length before and after what it contains.
    private mutating func block(_ type: UInt32, _ content: (inout CaptureFile) -> Void) {
        let start = bytes.count
        append(type)
        append(UInt32(0))
        content(&self)
        let length = UInt32(bytes.count - start + 4)
        append(length)
        for index in 0..<4 { bytes[start + 4 + index] = UInt8(truncatingIfNeeded: length >> (8 * UInt32(index))) }
    }

    private mutating func option(_ code: UInt16, _ value: [UInt8]) {
        append(code)
        append(UInt16(truncatingIfNeeded: value.count))
        bytes += value
        pad()
    }

    private mutating func endOptions() { append(UInt32(0)) }

    /// Everything begins at a multiple of four.
    private mutating func pad() { while bytes.count % 4 != 0 { bytes.append(0) } }

    /// Little endian.
    private mutating func append(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { bytes += $0 }
    }
}
