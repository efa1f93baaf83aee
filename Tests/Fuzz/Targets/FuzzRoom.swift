import Cryptography
import Forwarding
import MediaControl
import Primitives
import RTP
import SRTP
import Simulation

@testable import DTLS
@testable import MediaEngine
@testable import PeerTransport

/// An engine that serves one small room after another, for `EngineTarget`.
final class FuzzRoom {
    enum Member: UInt64, CaseIterable {
        case publisher = 1
        case subscriber, broadcaster

        var id: PeerID { PeerID(rawValue) }
        var address: SocketAddress { SocketAddress(ipv4: 0x0a00_0000 | UInt32(rawValue), port: 4_000) }
        var ufrag: String { "srv\(rawValue)" }
    }

    private let driver: EngineDriver
    private var now = MonotonicTime(milliseconds: 1_000)
    /// The members' ends of their SRTP.
    private var sessions: [Member: SRTPSession] = [:]
    /// Counts subscriptions made by commands.
    private var generation: UInt32 = 0
    private static let material = (0..<56).map { UInt8($0) }

    init() throws {
        driver = EngineDriver(
            try WorkerEngine(configuration: EngineConfiguration(), certificate: Certificate.selfSigned(), seed: 7),
            datagrams: 256, bytes: 400_000)
    }

    private var engine: WorkerEngine { driver.engine }

    /// Packets that went to subscribers so far.
    var forwarded: UInt64 { engine.statistics.packetsForwarded }

    // MARK: - Life

    func open() {
        generation = 0
        apply(.addRoom(RoomID(1)))
        for member in Member.allCases { add(member) }
        for stream in Stream.allCases {
            apply(.addTrack(stream.track))
            apply(.subscribe(stream.subscription))
        }
    }

    func close() {
        for member in Member.allCases { apply(.removePeer(member.id)) }
        apply(.removeRoom(RoomID(1)))
        sessions = [:]
        let left = engine.statistics
        precondition(
            left.peers == 0 && left.tracks == 0 && left.subscriptions == 0 && left.rooms == 0, "all is removed")
        precondition(engine.nextDeadline == .distantFuture, "nobody waits for anything")
        _ = engine.consumeEvents()
    }

    private func add(_ member: Member) {
        let local = ICECredentials(ufrag: member.ufrag, password: ICETarget.local.password)
        let remote = ICECredentials(ufrag: "cli\(member.rawValue)", password: ICETarget.remote.password)
        apply(
            .addPeer(
                PeerDescription(
                    id: member.id, room: RoomID(1), profile: member == .broadcaster ? .publishOnly : .full,
                    localICE: local,
                    remote: RemoteTransport(
                        ice: remote, fingerprintSHA256: [UInt8](repeating: 1, count: 32), localRole: .server),
                    feedbackSSRC: 0xf000_0000 | UInt32(member.rawValue))))
        let check = SignedSTUN.message(
            type: 1, transaction: [UInt8(member.rawValue)], username: "\(member.ufrag):cli\(member.rawValue)",
            attributes: [0, 0x25, 0, 0, 0, 0x24, 0, 4, 1, 2, 3, 4], password: local.password)
        give(check, from: member.address)
        answerCheck(of: member)
        guard let index = engine.tables.peerIndex[member.id.rawValue] else {
            preconditionFailure("a peer that was added")
        }
        let transport = engine.tables.peers[index].pointee.transport
        precondition(transport.remoteAddress == member.address, "its check selects its address")
        // As if the handshake had ended.
        let keys = DTLSKeys(profile: 0x0007, material: Self.material, key: 16, salt: 12, isClient: false)
        transport.install(keys, at: now)
        precondition(transport.mayReceive, "who has answered the server's check may be sent media")
        transport.dtls = nil
        sessions[member] = SRTPSession(
            profile: .aeadAES128GCM, sendingKey: keys.remote, receivingKey: keys.local)
        engine.handleTransportEvents(of: index, at: now)
        endTurn()
    }

    // MARK: - What comes in

    func receive(_ bytes: [UInt8], from member: Member) { receive(bytes, from: member.address) }

    func receiveFromUnknownSource(_ bytes: [UInt8], _ port: UInt16) {
        var bytes = bytes
        let waiting = driver.waiting
        bytes.withUnsafeMutableBytes {
            driver.receive($0, from: SocketAddress(ipv4: 0xc000_0299, port: port), at: now) { check($0) }
        }
        precondition(driver.waiting == waiting, "an unknown source gets no answer")
        endTurn()
    }

    private func receive(_ bytes: [UInt8], from address: SocketAddress) {
        give(bytes, from: address)
        endTurn()
    }

    private func give(_ bytes: [UInt8], from address: SocketAddress) {
        var bytes = bytes
        bytes.withUnsafeMutableBytes { driver.receive($0, from: address, at: now) { check($0) } }
    }

    /// The member answers the check that the server sent it ahead of its answer, and so may be sent media.
    private func answerCheck(of member: Member) {
        var transaction: [UInt8]?
        driver.endTurn(at: now) { batch in
            for entry in batch.entries where transaction == nil {
                let message = batch.bytes(of: entry)
                if message[0] == 0, message[1] == 1 { transaction = Array(message[8..<20]) }
            }
        }
        guard let transaction else { preconditionFailure("a check is answered with another one") }
        let answer = SignedSTUN.message(
            type: 0x0101, transaction: transaction, username: nil, attributes: [], password: ICETarget.remote.password)
        give(answer, from: member.address)
        endTurn()
    }

    /// A clear packet, through SRTP.
    func receiveProtected(_ packet: [UInt8], of member: Member) {
        var slot = packet + [UInt8](repeating: 0, count: 32)
        let length = slot.withUnsafeMutableBytes { sessions[member]?.protectRTP($0, length: packet.count) }
        if let length { receive(Array(slot[..<length]), from: member) }
    }

    /// A clear packet behind SRTP: what no replay check has seen.
    func receiveRTP(_ packet: [UInt8], of member: Member) {
        guard let index = engine.tables.peerIndex[member.id.rawValue] else { return }
        var packet = packet
        var track: PublishedTrack?
        packet.withUnsafeMutableBytes {
            _ = engine.tables.peers[index].pointee.uplink.receiveRTP($0, length: $0.count, at: now, track: &track)
        }
        if let track { engine.markDirty(track.tag) }
        engine.touch(index)
        endTurn()
    }

    /// A clear compound behind SRTP.
    func receiveRTCP(_ packet: [UInt8], of member: Member) {
        guard let index = engine.tables.peerIndex[member.id.rawValue] else { return }
        packet.withUnsafeBytes {
            engine.tables.peers[index].pointee.uplink.receiveRTCP($0.bytes, at: now)
            engine.receiveFeedback($0, of: index, at: now)
        }
        engine.touch(index)
        endTurn()
    }

    func pass(_ interval: TimeSpan) {
        let end = now + interval
        // An engine that always wants to be called at once would hang here.
        for _ in 0..<2_000 where engine.nextDeadline <= end {
            now = max(now, engine.nextDeadline)
            endTurn()
        }
        precondition(engine.nextDeadline > end, "a deadline that was served is over")
        now = end
    }

    /// A stream's subscription. A new one gets new SSRCs: the old ones must not be used again under the same keys.
    private func subscription(_ stream: Stream) -> SubscriptionDescription {
        var description = stream.subscription
        description.ssrc |= generation << 8
        description.rtxSSRC = description.rtxSSRC.map { $0 | generation << 8 }
        return description
    }

    func command(_ kind: UInt8, _ value: UInt8) {
        let stream = Stream.allCases[Int(value) % Stream.allCases.count]
        let other = Stream.allCases[Int(value >> 4) % Stream.allCases.count]
        switch kind % 12 {
        case 0: apply(.setTrackMuted(stream.track.id, value & 8 != 0))
        case 1: apply(.setSubscriptionPaused(stream.subscription.id, value & 8 != 0))
        case 2: apply(.setLayerPreference(stream.subscription.id, .spatial(Int(value >> 4) & 3)))
        case 3: apply(.switchSubscription(stream.subscription.id, to: value & 8 != 0 ? nil : other.track.id))
        case 4: apply(.requestKeyframe(stream.track.id))
        case 5: apply(.removeTrack(stream.track.id))
        case 6: apply(.addTrack(stream.track))
        case 7: apply(.unsubscribe(stream.subscription.id))
        case 8:
            generation = (generation + 1) & 0xffff
            apply(.subscribe(subscription(stream)))
        case 9: apply(.updateTrack(stream.track))
        case 10: apply(.setTrackMaximumBitrate(stream.track.id, .kilobitsPerSecond(Int64(value))))
        default: apply(.updateSubscription(stream.subscription))
        }
    }

    private func apply(_ command: MediaCommand) {
        driver.apply(command, at: now) { check($0) }
        endTurn()
    }

    // MARK: - What goes out

    private func endTurn() {
        driver.endTurn(at: now) { check($0) }
        _ = engine.consumeEvents()
    }

    private func check(_ batch: borrowing OutboundBatch) {
        for entry in batch.entries where entry.destination == Member.subscriber.address {
            check(batch.bytes(of: entry))
        }
    }

    private func check(_ datagram: UnsafeMutableRawBufferPointer) {
        guard datagram[0] >= 128, let session = sessions[.subscriber] else { return }
        if RTCPType.contains(datagram[1]) {
            guard case .clear(let length) = session.unprotectRTCP(datagram),
                var compound = RTCPCompound(UnsafeRawBufferPointer(rebasing: datagram[..<length]).bytes)
            else { preconditionFailure("reports are RTCP") }
            while compound.next(in: UnsafeRawBufferPointer(rebasing: datagram[..<length]).bytes) != nil {}
            precondition(!compound.isMalformed, "to the end")
            return
        }
        guard case .clear(let length) = session.unprotectRTP(datagram),
            let header = RTPHeader(UnsafeRawBufferPointer(rebasing: datagram[..<length]).bytes)
        else { preconditionFailure("what is forwarded is RTP, and new") }
        guard
            let stream = Stream.allCases.first(where: {
                // Without the generation.
                let ssrc = header.ssrc & 0xff00_00ff
                return $0.subscription.ssrc == ssrc || $0.subscription.rtxSSRC == ssrc
            })
        else { preconditionFailure("a subscriber gets its own SSRCs") }
        let types = Stream.allCases.flatMap(\.subscription.formats).flatMap { [$0.payloadType, $0.rtxPayloadType] }
        precondition(types.contains(header.payloadType), "\(stream) goes out in a type that was agreed")
        var elements = RTPHeaderExtensions(header)
        while let element = elements.next(in: UnsafeRawBufferPointer(datagram).bytes) {
            precondition(Stream.subscribed.meaning(of: element.id) != nil, "extensions were agreed")
        }
    }
}
