import Cryptography
import ICE
import MediaControl
import Primitives
import SRTP

@testable import DTLS
@testable import PeerTransport

/// One peer's transport in any state: fresh, validated, in its handshake, connected. An unknown source gets no answer and no hearing, and
/// nothing comes out clear that the peer's keys did not protect.
enum TransportTarget {
    static let home = SocketAddress(ipv4: 0xc000_0201, port: 50_000)

    static func start() throws -> (UnsafeRawBufferPointer) -> Void {
        let certificate = try Certificate.selfSigned()
        let context = try TransportContext(certificate: certificate, seed: 7)
        return { run($0, context) }
    }

    private static func run(_ bytes: UnsafeRawBufferPointer, _ context: TransportContext) {
        var input = FuzzInput(bytes)
        let state = input.byte()
        var peer = Peer(context, localRole: state & 4 == 0 ? .server : .client, hasRemote: state & 3 != 0)
        if state & 3 >= 1 { peer.validate() }
        if state & 3 == 3 { peer.connect() }
        while !input.isEmpty {
            let kind = input.byte()
            switch kind % 8 {
            case 0, 1: peer.receive(Array(input.record()), from: home)
            case 2: peer.receive(Array(input.record()), from: SocketAddress(ipv4: UInt32(kind), port: 9))
            case 3: peer.receiveCheck(Array(input.record()), from: home)
            case 4: peer.receiveCheck(Array(input.record()), from: SocketAddress(ipv4: 0xc000_0300, port: UInt16(kind)))
            case 5: peer.receiveProtected(Array(input.record()), isRTCP: kind & 8 != 0)
            case 6: peer.advance(by: .milliseconds(Int64(input.byte()) * 20))
            default: peer.restart(kind)
            }
        }
    }

    private struct Peer: ~Copyable {
        let transport: WebRTCTransport
        let context: TransportContext
        var output = OutboundBatch(datagrams: 64, bytes: 65_536)
        var now = MonotonicTime(milliseconds: 1_000)
        var sender: SRTPSession?
        var ufrag = ICETarget.local.ufrag
        private var checks: UInt8 = 0

        init(_ context: TransportContext, localRole: DTLSRole, hasRemote: Bool) {
            self.context = context
            let remote = RemoteTransport(
                ice: ICECredentials(ufrag: ICETarget.remote.ufrag, password: ICETarget.remote.password),
                fingerprintSHA256: [UInt8](repeating: 9, count: 32), localRole: localRole)
            transport = WebRTCTransport(
                description: PeerDescription(
                    id: PeerID(1), room: RoomID(1), profile: .full,
                    localICE: ICECredentials(ufrag: ICETarget.local.ufrag, password: ICETarget.local.password),
                    remote: hasRemote ? remote : nil, feedbackSSRC: 1), context: context, at: now)
        }

        mutating func validate() {
            receiveCheck([0, 0x25, 0, 0, 0, 0x24, 0, 4, 1, 2, 3, 4], from: TransportTarget.home)
            precondition(transport.remoteAddress == TransportTarget.home, "a nominating check shows where the peer is")
        }

        /// As if the handshake had ended: its own target does the handshake.
        mutating func connect() {
            let keys = DTLSKeys(
                profile: 0x0001, material: (0..<60).map { UInt8($0) }, key: 16, salt: 14, isClient: false)
            sender = SRTPSession(profile: .aes128CM80, sendingKey: keys.remote, receivingKey: keys.local)
            transport.install(keys, at: now)
            transport.dtls = nil
        }

        mutating func receive(_ bytes: [UInt8], from source: SocketAddress) {
            let isKnown = transport.isValidated(source)
            let waiting = output.count
            var bytes = bytes
            let received = bytes.withUnsafeMutableBytes { transport.receive($0, from: source, at: now, into: &output) }
            if !isKnown {
                precondition(output.count == waiting, "an unknown source gets no answer")
                precondition(!transport.isValidated(source), "and is not believed")
            }
            switch received {
            case .rtp, .rtcp: preconditionFailure("nothing comes out clear without keys")
            case .nothing, .dropped: settle()
            }
        }

        mutating func receiveCheck(_ attributes: [UInt8], from source: SocketAddress) {
            checks &+= 1
            var bytes = SignedSTUN.message(
                type: 1, transaction: [1, 2, checks], username: "\(ufrag):\(ICETarget.remote.ufrag)",
                attributes: attributes,
                password: ICETarget.local.password)
            bytes.withUnsafeMutableBytes { _ = transport.receive($0, from: source, at: now, into: &output) }
            settle()
        }

        mutating func receiveProtected(_ clear: [UInt8], isRTCP: Bool) {
            guard let sender else { return }
            var slot = clear + [UInt8](repeating: 0, count: 32)
            slot.withUnsafeMutableBytes { slot in
                let length =
                    isRTCP
                    ? sender.protectRTCP(slot, length: clear.count) : sender.protectRTP(slot, length: clear.count)
                guard let length else { return }
                let datagram = UnsafeMutableRawBufferPointer(rebasing: slot[..<length])
                switch transport.receive(datagram, from: TransportTarget.home, at: now, into: &output) {
                case .rtp(let length), .rtcp(let length):
                    precondition(length == clear.count && slot[..<length].elementsEqual(clear), "as it was sent")
                case .nothing, .dropped: break
                }
            }
            settle()
        }

        mutating func advance(by interval: TimeSpan) {
            now = now + interval
            transport.advance(to: now, into: &output)
            settle()
        }

        mutating func restart(_ kind: UInt8) {
            ufrag = "srvUfrag\(kind >> 3)"
            transport.restartICE(local: ICECredentials(ufrag: ufrag, password: ICETarget.local.password), at: now)
            settle()
        }

        private mutating func settle() {
            while transport.pollEvent() != nil {}
            precondition(!transport.isConnected || transport.remoteAddress != nil, "who is connected has an address")
            precondition(transport.media.pointee.destination == nil, "who answers no check is sent no media")
            if output.count > 40 { output.removeAll() }
        }
    }
}
