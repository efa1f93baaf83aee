import Primitives
import RTP
import Simulation

/// One peer connection that the generator plays.
final class Peer {
    // What each packet needs comes first, in few cache lines.
    var isConnected = false
    var isEnded = false
    var feedbackScheduled = false
    let hasPerfectLink: Bool
    let verifies: Bool
    var transportSequenceID: UInt8
    let index: Int
    private var lastStream: ReceiveStream?
    private var numbers: [UInt32] = []
    private(set) var streams: [ReceiveStream] = []
    var arrivals = ArrivalLog()
    /// About the number of bytes from the start of the object to here.
    static let hotBytes = 192

    let plan: ConnectionPlan
    var receives: [UInt8: ReceivedFormat]
    var extensions: ExtensionNumbers
    let transport: ClientTransport
    /// Where it sends from: its address (0: the socket's) and the socket.
    let address: UInt32
    let socket: Int
    /// Its SSRC in RTCP while it sends no media itself.
    let reporterSSRC: UInt32
    let cname: [UInt8]
    var sends: [SendStream] = []
    var transportSequence: UInt16 = 0
    var hasFrame = false
    /// Shared with the participant's other connections; nil if silences are not measured.
    var silence: Silence?
    var wakeAt: Int64 = .max
    var lastFeedback: Int64 = 0
    var nackScheduled = false
    /// When the bottleneck of the scenario's link has sent what it holds.
    var linkBusyUntil: Int64 = 0
    var random: RandomSource

    init(
        index: Int, plan: ConnectionPlan, transport: ClientTransport, address: UInt32, socket: Int, random: RandomSource
    ) {
        self.index = index
        self.plan = plan
        self.transport = transport
        self.address = address
        self.socket = socket
        var random = random
        let reporter = UInt32(truncatingIfNeeded: random.next()) | 1
        self.random = random
        receives = plan.receives
        extensions = plan.extensions
        transportSequenceID = plan.extensions.transportSequence
        hasPerfectLink = plan.link.isPerfect
        verifies = plan.verifies
        reporterSSRC = plan.sends.first?.ssrc ?? reporter
        cname = Array("load\(index)".utf8)
    }

    /// Prefetches what a packet of this SSRC will need.
    func warm(_ ssrc: UInt32) {
        arrivals.warm()
        stream(ssrc)?.warm()
    }

    /// The stream of an SSRC; nil if nothing has arrived with it yet.
    func stream(_ ssrc: UInt32) -> ReceiveStream? {
        if let lastStream, lastStream.ssrc == ssrc { return lastStream }
        guard let index = numbers.firstIndex(of: ssrc) else { return nil }
        lastStream = streams[index]
        return lastStream
    }

    func add(_ stream: ReceiveStream) {
        // If a server uses new SSRCs for hours, the oldest stream is removed.
        if streams.count >= 512 {
            streams.removeFirst()
            numbers.removeFirst()
        }
        streams.append(stream)
        numbers.append(stream.ssrc)
    }

    /// The media stream to which retransmissions of `payloadType` may belong and that misses `number`.
    func stream(missing number: UInt16, of payloadType: UInt8) -> ReceiveStream? {
        streams.first { stream in
            stream.payloadType == payloadType
                && stream.missing.contains { UInt16(truncatingIfNeeded: $0.sequence) == number }
        }
    }
}
