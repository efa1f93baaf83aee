import Cryptography
import DTLS
import MediaControl
import PeerTransport
import Primitives
import Simulation

/// A server peer and a client in virtual time, with a wire between them that tests can cut.
final class TransportPair {
    static let serverAddress = SocketAddress(ipv4: 0x0a00_0001, port: 7_900)
    static let serverICE = ICECredentials(ufrag: "srvUfrag", password: "serverPasswordOf24Letters")
    static let clientICE = ICECredentials(ufrag: "cliU", password: "clientPasswordOf24Letters")

    /// A datagram on its way.
    struct Datagram {
        var bytes: [UInt8]
        var arrival: MonotonicTime
        var toServer: Bool
        var source: SocketAddress
    }

    /// The server's.
    let context: TransportContext
    let server: WebRTCTransport
    let client: ClientTransport
    var now = MonotonicTime(milliseconds: 1_000)
    var clientAddress = SocketAddress(ipv4: 0xc000_0201, port: 50_000)
    var delay = TimeSpan.milliseconds(10)
    /// Says which datagrams are lost; called in order of sending.
    var loses: (Datagram) -> Bool = { _ in false }
    var serverEvents: [TransportEvent] = []
    var serverReceived: [Received] = []
    var clientReceived: [ClientReceived] = []
    var clearAtServer: [[UInt8]] = []
    var clearAtClient: [[UInt8]] = []
    private(set) var sent: [Datagram] = []
    /// Bytes that the server sent to where the client is not.
    var strayed: [SocketAddress: Int] = [:]
    private var wire: [Datagram] = []
    private var output = OutboundBatch(datagrams: 256, bytes: 512 * 1_024)

    init(
        certificate: Certificate = Shared.certificate, client clientCertificate: Certificate = Shared.clientCertificate,
        profiles: String = ClientContext.chromiumProfiles,
        behaviour: ClientBehaviour = .init(), settings: TransportSettings = .init(), fingerprint: [UInt8]? = nil,
        remoteKnown: Bool = true
    ) throws {
        let context = try TransportContext(certificate: certificate, settings: settings, seed: 7)
        self.context = context
        let remote = RemoteTransport(
            ice: Self.clientICE, fingerprintSHA256: fingerprint ?? clientCertificate.fingerprintSHA256,
            localRole: behaviour.role == .client ? .server : .client)
        server = WebRTCTransport(
            description: PeerDescription(
                id: PeerID(1), room: RoomID(1), profile: .full, localICE: Self.serverICE,
                remote: remoteKnown ? remote : nil, feedbackSSRC: 1), context: context, at: now)
        client = ClientTransport(
            context: try ClientContext(certificate: clientCertificate, profiles: profiles), behaviour: behaviour,
            local: Self.clientICE, server: Self.serverICE, serverFingerprint: certificate.fingerprintSHA256,
            destination: Self.serverAddress)
    }

    /// Runs both sides and the wire until `limit` has passed or `condition` holds.
    @discardableResult
    func run(for limit: TimeSpan, until condition: () -> Bool = { false }) -> Bool {
        let end = now + limit
        while true {
            if condition() { return true }
            let next = min(client.nextDeadline, server.nextDeadline, wire.map(\.arrival).min() ?? .distantFuture)
            guard next <= end else {
                now = end
                return condition()
            }
            now = max(now, next)
            step()
        }
    }

    private func step() {
        if now >= client.nextDeadline { client.advance(to: now, into: &output) }
        collect(toServer: true)
        if now >= server.nextDeadline { server.advance(to: now, into: &output) }
        collect(toServer: false)
        let due = wire.filter { $0.arrival <= now }
        wire.removeAll { $0.arrival <= now }
        for datagram in due { deliver(datagram) }
        while let event = server.pollEvent() { serverEvents.append(event) }
    }

    private func deliver(_ datagram: Datagram) {
        var bytes = datagram.bytes
        if datagram.toServer {
            let result = bytes.withUnsafeMutableBytes {
                server.receive($0, from: datagram.source, at: now, into: &output)
            }
            serverReceived.append(result)
            if case .rtp(let length) = result { clearAtServer.append(Array(bytes[..<length])) }
            if case .rtcp(let length) = result { clearAtServer.append(Array(bytes[..<length])) }
            collect(toServer: false)
        } else {
            let result = bytes.withUnsafeMutableBytes {
                client.receive($0, from: datagram.source, at: now, into: &output)
            }
            clientReceived.append(result)
            if case .rtp(let length) = result { clearAtClient.append(Array(bytes[..<length])) }
            collect(toServer: true)
        }
        while let event = server.pollEvent() { serverEvents.append(event) }
    }

    /// Puts what was written on the wire.
    func collect(toServer: Bool) {
        for entry in output.entries {
            // The server's datagrams reach the client only at the address that the client has now.
            if !toServer, entry.destination != clientAddress {
                strayed[entry.destination, default: 0] += entry.length
                continue
            }
            let bytes = Array(output.bytes(of: entry))
            let datagram = Datagram(
                bytes: bytes, arrival: now + delay, toServer: toServer,
                source: toServer ? clientAddress : Self.serverAddress)
            sent.append(datagram)
            if !loses(datagram) { wire.append(datagram) }
        }
        output.removeAll()
    }

    /// Hands the server a datagram from anywhere, at once.
    func inject(_ bytes: [UInt8], from source: SocketAddress) -> Received {
        var bytes = bytes
        let result = bytes.withUnsafeMutableBytes { server.receive($0, from: source, at: now, into: &output) }
        while let event = server.pollEvent() { serverEvents.append(event) }
        collect(toServer: false)
        return result
    }

    /// Hands the server media from an unknown address, as an engine does that knows the peer at another port there.
    func injectRemapped(_ bytes: [UInt8], from source: SocketAddress) -> Received? {
        var bytes = bytes
        let result = bytes.withUnsafeMutableBytes {
            server.receiveRemapped($0, from: source, at: now, into: &output)
        }
        while let event = server.pollEvent() { serverEvents.append(event) }
        collect(toServer: false)
        return result
    }

    /// What an engine does when it has media for the peer: protects and sends it, if it may.
    @discardableResult
    func sendMedia(_ sequence: UInt16, payload: Int = 1_100) -> Bool {
        guard let destination = server.media.pointee.destination else { return false }
        var slot = Self.rtp(sequence, 0x2222_2222, [UInt8](repeating: 7, count: payload))
        let length = slot.count
        slot += [UInt8](repeating: 0, count: WebRTCTransport.protectionOverhead)
        slot.withUnsafeMutableBytes { slot in
            guard let length = server.protectRTP(slot, length: length) else { return }
            _ = output.append(UnsafeRawBufferPointer(rebasing: slot[..<length]), to: destination)
        }
        collect(toServer: false)
        return true
    }

    func withOutput(_ body: (inout OutboundBatch) -> Void, toServer: Bool) {
        body(&output)
        collect(toServer: toServer)
        while let event = server.pollEvent() { serverEvents.append(event) }
    }

    /// An RTP packet, protected by the client.
    func clientRTP(sequence: UInt16, ssrc: UInt32 = 0x1111_1111, payload: [UInt8] = [1, 2, 3, 4]) -> [UInt8] {
        var slot = Self.rtp(sequence, ssrc, payload)
        let length = slot.count
        slot += [UInt8](repeating: 0, count: 64)
        let protected = slot.withUnsafeMutableBytes { client.protectRTP($0, length: length) }
        return Array(slot[..<(protected ?? 0)])
    }

    static func rtp(_ sequence: UInt16, _ ssrc: UInt32, _ payload: [UInt8]) -> [UInt8] {
        [0x80, 96, UInt8(sequence >> 8), UInt8(sequence & 255), 0, 0, 0, 1]
            + (0..<4).map { UInt8(truncatingIfNeeded: ssrc >> (24 - 8 * $0)) } + payload
    }

    /// Connects both sides, which every later step needs.
    func connect() -> Bool { run(for: .seconds(5)) { client.isConnected && server.isConnected } }
}

/// Certificates are made once for all tests.
enum Shared {
    static let certificate = make(.p256)
    static let clientCertificate = make(.p256)
    static let rsaCertificate = make(.rsa2048)

    private static func make(_ kind: Certificate.KeyKind) -> Certificate {
        do { return try Certificate.selfSigned(kind) } catch { preconditionFailure("no certificate: \(error)") }
    }
}
