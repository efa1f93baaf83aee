import CLoadIO
import Cryptography
import MediaControl
import NetworkIO
import PeerTransport
import Primitives
import RTP
import Synchronization

/// A minimal forwarding server that applies its plan's faults to packets, so that the self-test knows what the generator must
/// find. It uses real ICE, DTLS and SRTP on its own socket.
final class FaultRelay {
    /// One connection to it.
    private final class Member {
        let transport: WebRTCTransport
        let ufrag: [UInt8]
        let publishes: Bool
        var schedules: [UInt32: FaultSchedule] = [:]

        init(transport: WebRTCTransport, ufrag: String, publishes: Bool) {
            self.transport = transport
            self.ufrag = Array(ufrag.utf8)
            self.publishes = publishes
        }
    }

    private struct Waiting {
        var at: Int64
        var since: Int64
        var bytes: [UInt8]
        var to: SocketAddress
    }

    private let shared: FaultRelayHandle
    private let context: TransportContext
    private var socket: UDPSocket
    private let poller: Poller
    private var members: [Member] = []
    private var bySource: [SocketAddress: Member] = [:]
    private var batch = OutboundBatch(datagrams: 512, bytes: 1 << 20)
    private var waiting: [Waiting] = []
    private var log = FaultLog()
    private var now = MonotonicTime.zero
    private var arrival: Int64 = 0

    init(shared: FaultRelayHandle, certificate: Certificate) throws {
        self.shared = shared
        context = try TransportContext(certificate: certificate, seed: 11)
        socket = try UDPSocket(UDPSocketConfiguration(address: SocketAddress(ipv4: 0x7f00_0001, port: 0), port: 0))
        poller = try Poller()
        try poller.add(socket.descriptor)
    }

    /// Relays until the handle stops it.
    func run() {
        shared.update { $0.port = self.socket.port }
        while !shared.isStopped {
            now = MonotonicClock.now()
            _ = poller.wait(until: now + .milliseconds(1), now: now)
            now = MonotonicClock.now()
            for entry in shared.takeMembers() { add(entry) }
            while let run = socket.receive() {
                arrival = loadio_monotonic()
                for index in 0..<run.count { receive(run[index], from: run.source) }
                flush()
            }
            for member in members where now >= member.transport.nextDeadline {
                member.transport.advance(to: now, into: &batch)
            }
            release()
            flush()
            let log = log
            shared.update { $0.log = log }
        }
    }

    private func add(_ entry: FaultRelayHandle.Entry) {
        let remote = RemoteTransport(
            ice: entry.remoteICE, fingerprintSHA256: entry.fingerprint, localRole: .server)
        let transport = WebRTCTransport(
            description: PeerDescription(
                id: PeerID(UInt64(members.count + 1)), room: RoomID(1), profile: .full, localICE: entry.localICE,
                remote: remote, feedbackSSRC: UInt32(members.count + 1)), context: context, at: now)
        members.append(Member(transport: transport, ufrag: entry.localICE.ufrag, publishes: entry.publishes))
    }

    private func member(_ datagram: UnsafeMutableRawBufferPointer, _ source: SocketAddress) -> Member? {
        if let member = bySource[source] { return member }
        guard let range = TransportPeek.localUfrag(of: UnsafeRawBufferPointer(datagram).bytes) else { return nil }
        let found = members.first { datagram[range].elementsEqual($0.ufrag) }
        bySource[source] = found
        return found
    }

    private func receive(_ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress) {
        guard let member = member(datagram, source) else { return }
        let received = member.transport.receive(datagram, from: source, at: now, into: &batch)
        while member.transport.pollEvent() != nil {}
        guard case .rtp(let length) = received, member.publishes else { return }
        for other in members where !other.publishes && other.transport.isConnected {
            forward(UnsafeRawBufferPointer(rebasing: datagram[0..<length]), to: other)
        }
    }

    /// Forwards a clear packet, with the fault that is due.
    private func forward(_ packet: UnsafeRawBufferPointer, to member: Member) {
        guard let header = RTPHeader(packet.bytes) else { return }
        let plan = shared.plan
        var schedule = member.schedules[header.ssrc] ?? FaultSchedule()
        defer { member.schedules[header.ssrc] = schedule }
        let fault = schedule.next(of: plan)
        if fault == .jump { schedule.shift &+= 3_000 }
        if let fault { log.counts[fault, default: 0] += 1 }
        var bytes = Array(packet)
        let number = header.sequenceNumber &+ schedule.shift
        bytes[2] = UInt8(number >> 8)
        bytes[3] = UInt8(truncatingIfNeeded: number)
        switch fault {
        case .drop: return
        case .leaveOut:
            schedule.shift &-= 1
            return
        case .swap:
            schedule.held = bytes
            return
        case .corrupt: bytes[header.payloadOffset + 8 + schedule.count % 16] ^= 0x55
        default: break
        }
        send(bytes, to: member, twice: fault == .duplicate, damaged: fault == .damage)
        if let held = schedule.held {
            schedule.held = nil
            send(held, to: member, twice: false, damaged: false)
        }
    }

    private func send(_ bytes: [UInt8], to member: Member, twice: Bool, damaged: Bool) {
        guard let slot = batch.reserve(1_600), let address = member.transport.remoteAddress else { return }
        slot.copyBytes(from: bytes)
        guard let length = member.transport.protectRTP(slot, length: bytes.count) else { return }
        if damaged { slot[length - 3] ^= 1 }
        log.forwarded += 1
        let protected = Array(slot[0..<length])
        for _ in 0..<(twice ? 2 : 1) {
            waiting.append(
                Waiting(at: arrival + shared.plan.hold, since: arrival, bytes: protected, to: address))
        }
        if shared.plan.hold == 0 { release() }
    }

    /// Sends what has been held long enough, in order.
    private func release() {
        var count = 0
        let time = loadio_monotonic()
        while count < waiting.count, waiting[count].at <= time {
            let packet = waiting[count]
            _ = packet.bytes.withUnsafeBytes { batch.append($0, to: packet.to) }
            log.held.add(time - packet.since)
            count += 1
        }
        waiting.removeFirst(count)
    }

    private func flush() {
        guard batch.count > 0 else { return }
        socket.send(batch)
        batch.removeAll()
    }
}
