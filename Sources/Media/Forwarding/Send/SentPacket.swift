import PayloadFormats
import Primitives

/// One number of a subscription's output: the packet sent under it, and everything needed to render that again, byte for byte.
///
/// A retransmission on the media SSRC uses the same SRTP packet index, and two different plaintexts under one index would reveal the
/// GCM authentication key; so send time and transport-wide number are kept and reused, not renewed.
public struct SentPacket: Sendable {
    /// What was sent under the number.
    enum Content: Sendable {
        /// Nothing yet: the entry is unused.
        case none
        /// A packet of the publisher.
        case forwarded(Forwarded)
        /// The layer's cached parameter sets, of this revision; see `ParameterSetCache`.
        case parameterSets(Generated, revision: UInt16)
        /// Only padding: a number that the publisher used for padding, or one whose packet cannot be sent, so that no gap stays open; or a probe.
        case padding(Generated)
    }

    /// A packet of the publisher, and what is changed in it.
    struct Forwarded: Sendable {
        /// The publisher's extended sequence number, low 32 bits.
        var source: UInt32
        var deltas: NumberDeltas
        /// Its layer information.
        var mark: LayerMark
    }

    /// A packet that the server generates.
    struct Generated: Sendable {
        var timestamp: UInt32
        /// The publisher's format whose payload type it has.
        var format: UInt8
    }

    /// What was written into the packet.
    struct Flags: OptionSet, Sendable {
        let rawValue: UInt8
        /// The mid extension.
        static let mid = Self(rawValue: 1)
        /// The marker is set although the publisher's packet has none (SVC picture without its upper layers).
        static let marker = Self(rawValue: 2)
        /// The capture clock offset was known when it was written.
        static let captureOffset = Self(rawValue: 4)
        /// It was sent at least once.
        static let sent = Self(rawValue: 8)
    }

    /// The extended output sequence number, low 32 bits.
    public internal(set) var sequence: UInt32
    /// abs-send-time, 24 bits.
    private(set) var sendTime: UInt32 = 0
    var content: Content
    /// The layer whose history or parameter sets it is from.
    let layer: UInt8
    /// The transport-wide sequence number.
    private(set) var transportSequence: UInt16 = 0
    /// The last retransmission, see `moment(of:)`; 0 before the first.
    var lastRepeat: UInt16 = 0
    var flags: Flags = []
    /// The binding of the subscription it belongs to; another track's history does not have it.
    var epoch: UInt8 = 0
    /// Bytes of RTP padding; after a payload, as many as make the packet as long as its neighbours.
    var padding: UInt8 = 0

    init(sequence: UInt32, content: Content, layer: UInt8 = 0) {
        self.sequence = sequence
        self.content = content
        self.layer = layer
    }

    /// An unused entry.
    init() { self.init(sequence: 0, content: .none) }

    /// Only padding in place of this packet, to be sent as such.
    @inline(__always) func filler(_ generated: Generated) -> SentPacket {
        var filler = SentPacket(sequence: sequence, content: .padding(generated), layer: layer)
        filler.lastRepeat = lastRepeat
        return filler
    }

    @inline(__always) var isUsed: Bool { if case .none = content { false } else { true } }

    /// The packet of the publisher; nil if the server generated it.
    @inline(__always) var forwarded: Forwarded? { if case .forwarded(let packet) = content { packet } else { nil } }

    @inline(__always) var isPadding: Bool { if case .padding = content { true } else { false } }

    /// Sets the layer information of a publisher's packet.
    @inline(__always) mutating func mark(_ mark: LayerMark) {
        guard var packet = forwarded else { return }
        packet.mark = mark
        content = .forwarded(packet)
    }

    /// Joins a publisher's packet to a neighbour, in addition to earlier joins.
    mutating func join(_ neighbour: AV1Joining) {
        guard var packet = forwarded else { return }
        packet.mark.join(neighbour)
        content = .forwarded(packet)
    }

    /// Sets what depends on when and on which transport it is sent.
    @inline(__always) mutating func apply(_ stamp: SendStamp) {
        sendTime = stamp.sendTime
        transportSequence = stamp.transportSequence
    }

    /// `time` as stored in `lastRepeat`: milliseconds, low 16 bits. 0 means never. An error of a millisecond per minute does not matter, nor does a request
    /// that arrives exactly a minute after the retransmission and is taken for one of the same moment.
    static func moment(of time: MonotonicTime) -> UInt16 { max(1, UInt16(truncatingIfNeeded: time.milliseconds)) }

    /// Time since its last retransmission; nil before the first.
    func sinceRepeat(at now: MonotonicTime) -> TimeSpan? {
        lastRepeat == 0 ? nil : .milliseconds(Int64(Self.moment(of: now) &- lastRepeat))
    }
}

/// The last numbers of one subscription, by output sequence number.
///
/// Starts small and doubles while the entry to overwrite is younger than a second, so that a 5 fps screen share does not need
/// the memory of a 6 Mbit/s camera.
struct SentPacketRing: ~Copyable {
    private(set) var places: UnsafeMutablePointer<SentPacket>?
    private var mask: UInt32 = 0
    private let maximum: Int
    /// When entry 0 was last written; the lap time shows how much history the ring holds.
    private var lapStart = MonotonicTime.zero

    /// 6 Mbit/s x 1 s / 1,100 B = 700 video packets, next power of two, doubled for bursts of small packets.
    static let maximumVideo = 2_048
    /// 100 packets/s (10 ms) x 1 s, next power of two.
    static let maximumAudio = 128

    /// A ring of at most `maximum` entries (a power of two); empty if nothing can be retransmitted.
    init(maximum: Int) {
        self.maximum = maximum
        guard maximum > 0 else { return }
        let capacity = min(64, maximum)
        places = Self.allocate(capacity)
        mask = UInt32(capacity - 1)
    }

    deinit { places?.deallocate() }

    /// Whether it stores anything.
    var isKeeping: Bool { places != nil }

    var memoryBytes: Int { places == nil ? 0 : (Int(mask) + 1) * MemoryLayout<SentPacket>.stride }

    private static func allocate(_ capacity: Int) -> UnsafeMutablePointer<SentPacket> {
        let places = UnsafeMutablePointer<SentPacket>.allocate(capacity: capacity)
        places.initialize(repeating: SentPacket(), count: capacity)
        return places
    }

    /// Prefetches the entry for `sequence`.
    @inline(__always) func prefetch(_ sequence: UInt32) {
        if let places { Prefetch.lines(places + Int(sequence & mask), MemoryLayout<SentPacket>.size) }
    }

    /// The entry of `sequence`, if it is still stored.
    @inline(__always) func place(_ sequence: UInt32) -> UnsafeMutablePointer<SentPacket>? {
        guard let places else { return nil }
        let place = places + Int(sequence & mask)
        return place.pointee.sequence == sequence && place.pointee.isUsed ? place : nil
    }

    /// The entry of the newest extended number whose low 16 bits are `wire`, at or before `highest`.
    @inline(__always) func place(wire: UInt16, highest: UInt32) -> UnsafeMutablePointer<SentPacket>? {
        let behind = UInt32(UInt16(truncatingIfNeeded: highest) &- wire)
        return place(highest &- behind)
    }

    /// Whether `sequence` was stored, but a later number has overwritten it.
    func hasOverwritten(_ sequence: UInt32) -> Bool {
        guard let places else { return false }
        let place = places + Int(sequence & mask)
        return place.pointee.isUsed && Int32(bitPattern: place.pointee.sequence &- sequence) > 0
    }

    /// Stores `packet` under its output number.
    @inline(__always) mutating func store(_ packet: SentPacket, at now: MonotonicTime) {
        guard let places else { return }
        if packet.sequence & mask == 0 { turnOver(at: now) }
        var current = self.places ?? places
        // Packets queued at the pacer are sent from here. A large frame may arrive in one turn after minutes of small ones.
        let old = current + Int(packet.sequence & mask)
        if old.pointee.isUsed, !old.pointee.flags.contains(.sent), Int(mask) + 1 < maximum {
            grow(from: current)
            current = self.places ?? current
        }
        current[Int(packet.sequence & mask)] = packet
    }

    /// A lap is complete: doubles the ring when the lap was shorter than a second.
    private mutating func turnOver(at now: MonotonicTime) {
        let lap = now - lapStart
        lapStart = now
        guard let old = places, old[0].isUsed, lap < .seconds(1), Int(mask) + 1 < maximum else { return }
        grow(from: old)
    }

    private mutating func grow(from old: UnsafeMutablePointer<SentPacket>) {
        let capacity = Int(mask) + 1
        let grown = Self.allocate(capacity * 2)
        let newMask = UInt32(capacity * 2 - 1)
        for index in 0..<capacity where old[index].isUsed {
            grown[Int(old[index].sequence & newMask)] = old[index]
        }
        old.deallocate()
        places = grown
        mask = newMask
    }
}
