import Glibc
import MediaControl
import NetworkIO
import Primitives
import RTP
import Simulation

/// A client behind a TCP connection of its own: a `ClientTransport` whose datagrams go in frames, or whatever bytes a test sends.
final class FramedClient {
    let transport: ClientTransport
    private let server: SocketAddress
    private var socket: TCPSocket
    private var reader = FrameReader()
    private var batch = OutboundBatch(datagrams: 32, bytes: 65_536)
    /// The server has closed the connection.
    private(set) var isClosed = false

    /// Connects to `port` of this machine, as the peer `peer` of a server with this certificate.
    init(port: UInt16, peer: PeerDescription, context: ClientContext, serverFingerprint: [UInt8]) {
        server = SocketAddress(ipv4: 0x7f00_0001, port: port)
        socket = Self.connected(port)
        transport = ClientTransport(
            context: context, local: ICECredentials(ufrag: "cli1", password: "passwordpasswordpassword"),
            server: peer.localICE, serverFingerprint: serverFingerprint, destination: server)
    }

    /// A non-blocking connection to a port of this machine, whose kernel accepts it at once.
    static func connected(_ port: UInt16) -> TCPSocket {
        let descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        precondition(result == 0, "the worker listens")
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        return TCPSocket(descriptor: descriptor)
    }

    /// Goes on with another connection to the same port.
    func reconnect() {
        socket = Self.connected(server.port)
        reader = FrameReader()
        isClosed = false
        transport.checkNow(at: MonotonicClock.now())
    }

    func close() { socket.close() }

    /// Sends bytes as they are.
    func send(_ bytes: [UInt8]) { bytes.withUnsafeBytes { _ = socket.write($0) } }

    /// Sends a packet in its frame.
    func sendFramed(_ packet: [UInt8]) { send([UInt8(packet.count >> 8), UInt8(packet.count & 0xff)] + packet) }

    /// Its first check, unsent.
    func check() -> [UInt8] {
        transport.advance(to: MonotonicClock.now(), into: &batch)
        defer { batch.removeAll() }
        return batch.entries.first.map { Array(batch.bytes(of: $0)) } ?? []
    }

    /// Answers what has arrived and does what is due.
    func work() {
        let now = MonotonicClock.now()
        if transport.nextDeadline <= now { transport.advance(to: now, into: &batch) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        bytes.withUnsafeMutableBytes { buffer in
            while true {
                switch socket.read(into: buffer) {
                case .bytes(let count):
                    let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
                    var position = 0
                    while case .packet(let packet) = reader.next(in: part, from: &position) {
                        _ = transport.receive(packet, from: server, at: now, into: &batch)
                    }
                case .blocked: return
                case .ended:
                    isClosed = true
                    return
                }
            }
        }
        for entry in batch.entries { sendFramed(Array(batch.bytes(of: entry))) }
        batch.removeAll()
    }
}
