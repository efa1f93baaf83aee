import MediaControl
import Primitives
import RTP

@testable import Forwarding

/// One packet as a subscription wrote it.
struct WrittenPacket {
    var bytes: [UInt8]
    var header: RTPHeader
    var time: MonotonicTime

    var payload: [UInt8] { Array(bytes[header.payloadOffset..<(header.payloadOffset + header.payloadLength)]) }
    /// id -> value of its header extensions.
    var extensions: [UInt8: [UInt8]] {
        bytes.withUnsafeBytes { raw in
            var found: [UInt8: [UInt8]] = [:]
            guard header.extensionLength > 0 else { return found }
            var elements = RTPHeaderExtensions(header)
            while let element = elements.next(in: raw.bytes) {
                found[element.id] = Array(bytes[element.offset..<(element.offset + element.length)])
            }
            return found
        }
    }
    /// VP8 numbers, for descriptors with all of them.
    var pictureID: Int { Int(payload[2] & 0x7f) << 8 | Int(payload[3]) }
    var temporalZero: UInt8 { payload[4] }
    var keyIndex: UInt8 { payload[5] & 0x1f }
    var temporalLayer: UInt8 { payload[5] >> 6 }
    var startsFrame: Bool { payload[0] & 0x10 != 0 }
    var isKeyframe: Bool { startsFrame && payload[6] & 1 == 0 }
}

/// One published track with one subscription: packets in, the subscriber's packets out.
final class SendHarness {
    let uplink: Uplink
    private(set) var track: PublishedTrack
    private let holder: UnsafeMutablePointer<Subscription>
    private var list = WorkList<SentPacket>(capacity: 16)
    private let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 16)
    var out: [WrittenPacket] = []
    var signals: [Subscription.Signals] = []
    var transportSequence: UInt16 = 0
    /// Levels each turn's packets, as the engine does.
    var levelsSizes = false
    /// Packets wait, as at a pacer that is full, until `release`.
    var parks = false
    private var parked: [UInt32] = []
    var padded = 0

    init(_ track: TrackDescription, _ subscription: SubscriptionDescription, seed: UInt64 = 3) {
        uplink = Uplink(feedbackSSRC: 1, profile: .full)
        self.track = uplink.addTrack(track, at: .zero)!
        var random = RandomSource(seed: seed)
        holder = .allocate(capacity: 1)
        holder.initialize(to: Subscription(subscription, random: &random))
        holder.pointee.bind(self.track)
    }

    deinit {
        holder.deinitialize(count: 1)
        holder.deallocate()
        slot.deallocate()
    }

    var subscription: UnsafeMutablePointer<Subscription> { holder }
    var layer: Int? { holder.pointee.layer }
    var totals: SubscriptionTotals { holder.pointee.totals }

    @discardableResult
    func setPaused(_ paused: Bool) -> Bool { holder.pointee.setPaused(paused, track: track) }

    /// Takes packets as one turn.
    func turn(_ packets: [[UInt8]], at now: MonotonicTime) {
        for packet in packets {
            slot.copyBytes(from: packet)
            var found: PublishedTrack?
            _ = uplink.receiveRTP(slot, length: packet.count, at: now, track: &found)
        }
        endTurn(at: now)
    }

    func endTurn(at now: MonotonicTime) {
        list.removeAll()
        signals.append(holder.pointee.plan(track, at: now, into: &list))
        if levelsSizes { padded += holder.pointee.level(list.elements, of: track) }
        for index in 0..<list.count {
            if parks {
                parked.append(list[index].sequence)
                continue
            }
            transportSequence &+= 1
            let stamp = SendStamp(at: now, transportSequence: transportSequence)
            guard let length = holder.pointee.write(list[index], of: track, stamp: stamp, at: now, into: slot) else {
                continue
            }
            keep(length, at: now, in: &out)
        }
        track.endTurn()
    }

    /// Lets what waits go; what became of each packet.
    func release(at now: MonotonicTime, hasTrack: Bool = true) -> [WaitingResult] {
        defer { parked.removeAll() }
        return parked.map { sequence in
            transportSequence &+= 1
            let stamp = SendStamp(at: now, transportSequence: transportSequence)
            let result = holder.pointee.writeWaiting(
                sequence, of: hasTrack ? track : nil, stamp: stamp, at: now, into: slot)
            switch result {
            case .written(let length), .filled(let length, _): keep(length, at: now, in: &out)
            case .gone: break
            }
            return result
        }
    }

    /// What a NACK of `number` is answered with.
    func repeats(of number: UInt16, roundTrip: TimeSpan = .milliseconds(50), at now: MonotonicTime)
        -> WrittenPacket?
    {
        guard
            case .send(let sequence) = holder.pointee.requestRepeat(
                number, of: track, roundTrip: roundTrip, at: now)
        else { return nil }
        transportSequence &+= 1
        let stamp = SendStamp(at: now, transportSequence: transportSequence)
        guard let length = holder.pointee.writeRepeat(sequence, of: track, stamp: stamp, at: now, into: slot) else {
            return nil
        }
        var written: [WrittenPacket] = []
        keep(length, at: now, in: &written)
        return written.first
    }

    /// Writes one packet of a probe; false where it cannot.
    func probe(at now: MonotonicTime) -> Bool {
        transportSequence &+= 1
        let stamp = SendStamp(at: now, transportSequence: transportSequence)
        let length = holder.pointee.writeProbe(wanted: 240, of: track, stamp: stamp, at: now, into: slot)
        if let length { keep(length, at: now, in: &out) }
        return length != nil
    }

    /// Puts another track behind the section.
    func switchTo(_ description: TrackDescription, at now: MonotonicTime) {
        let next = uplink.addTrack(description, at: now)!
        holder.pointee.unbind(track)
        track = next
        holder.pointee.bind(next)
    }

    private func keep(_ length: Int, at now: MonotonicTime, in list: inout [WrittenPacket]) {
        let bytes = Array(slot[..<length])
        guard let header = bytes.withUnsafeBytes({ RTPHeader($0.bytes) }) else { preconditionFailure("not RTP") }
        list.append(WrittenPacket(bytes: bytes, header: header, time: now))
    }
}

/// What a receiver demands of one stream (G1).
struct ContinuityChecker {
    var errors: [String] = []
    private var last: WrittenPacket?
    private var lastPicture: Int?
    private var lastTemporalZero: UInt8?
    private var frameOpen = false

    mutating func check(_ packets: [WrittenPacket]) {
        for packet in packets { check(packet) }
    }

    private mutating func check(_ packet: WrittenPacket) {
        defer { last = packet }
        let name = "packet \(packet.header.sequenceNumber)"
        if let last {
            if packet.header.ssrc != last.header.ssrc { errors.append("\(name): another SSRC") }
            if packet.header.sequenceNumber != last.header.sequenceNumber &+ 1 {
                errors.append("\(name): sequence jumps")
            }
            let step = Int32(bitPattern: packet.header.timestamp &- last.header.timestamp)
            if packet.startsFrame {
                if step <= 0 { errors.append("\(name): time steps by \(step)") }
                if step > 90_000 { errors.append("\(name): time leaps by \(step)") }
            } else if step != 0 {
                errors.append("\(name): time changes within a frame")
            }
        }
        if packet.startsFrame {
            if frameOpen { errors.append("\(name): the frame before was cut") }
            if let lastPicture, packet.pictureID != (lastPicture + 1) & 0x7fff {
                errors.append("\(name): picture \(packet.pictureID) after \(lastPicture)")
            }
            if let lastTemporalZero,
                packet.temporalZero != (packet.temporalLayer == 0 ? lastTemporalZero &+ 1 : lastTemporalZero)
            {
                errors.append("\(name): TL0PICIDX \(packet.temporalZero) after \(lastTemporalZero)")
            }
            lastPicture = packet.pictureID
            lastTemporalZero = packet.temporalZero
        } else if packet.pictureID != lastPicture {
            errors.append("\(name): picture changes within a frame")
        }
        frameOpen = !packet.header.marker
    }
}
