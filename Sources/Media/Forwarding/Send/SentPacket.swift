import Primitives

/// One number of a subscription's output: which stored packet it stands for and everything that is needed to make it again,
/// byte for byte.
///
/// A repeat on the media SSRC uses the same SRTP packet index, and two different texts under one index would give away the
/// GCM authentication key; so send time and transport-wide number are kept and repeated, not renewed.
public struct SentPacket: Sendable {
    /// What kind of packet it is and what was written into it.
    public struct Flags: OptionSet, Sendable {
        public let rawValue: UInt8
        @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }
        /// The place was used; an all-zero place was not.
        public static let used = Self(rawValue: 1)
        /// Cached parameter sets instead of a stored packet.
        public static let parameterSets = Self(rawValue: 2)
        /// A number that the publisher spent on padding: sent as padding, so that no gap stays open.
        public static let filler = Self(rawValue: 4)
        /// The mid extension is in it.
        public static let mid = Self(rawValue: 8)
        /// The marker is set although the publisher's packet has none (SVC picture without its upper layers).
        public static let marker = Self(rawValue: 16)
        /// The capture clock offset was known when it was written.
        public static let captureOffset = Self(rawValue: 32)
        /// It has left at least once.
        public static let sent = Self(rawValue: 64)
    }

    /// The extended output sequence number, low 32 bits.
    public var sequence: UInt32 = 0
    /// The publisher's extended sequence number, low 32 bits.
    public var source: UInt32 = 0
    /// Added to the publisher's timestamp; the whole timestamp where there is no stored packet.
    public var timestampDelta: UInt32 = 0
    /// abs-send-time, 24 bits.
    var sendTime: UInt32 = 0
    /// Milliseconds of the last repeat, low 32 bits; 0 before the first.
    var lastRepeat: UInt32 = 0
    /// Added to the VP8 or VP9 picture id; of cached parameter sets which ones they were, see `ParameterSetCache`.
    var pictureDelta: UInt16 = 0
    /// Added to the frame number of the dependency descriptor.
    var frameDelta: UInt16 = 0
    /// The transport-wide sequence number.
    var transportSequence: UInt16 = 0
    /// The layer whose history has the packet.
    public var layer: UInt8 = 0
    public var flags: Flags = []
    /// Added to TL0PICIDX.
    var temporalZeroDelta: UInt8 = 0
    /// What it says about layers.
    var mark = LayerMark()
    /// Which binding of the subscription it belongs to; another track's history does not have it.
    var epoch: UInt8 = 0
    /// Bytes of RTP padding behind the payload, which make it as long as its neighbours.
    var padding: UInt8 = 0

    @inlinable public init() {}

    /// `time` as `lastRepeat` keeps it. 0 means never; one millisecond in 49 days does not matter.
    static func moment(of time: MonotonicTime) -> UInt32 { max(1, UInt32(truncatingIfNeeded: time.milliseconds)) }
}

// Packets that the server makes itself have no stored packet to refer to: they use its fields for what they need.
extension SentPacket {
    /// Made by the server: cached parameter sets, or padding under a number of the stream.
    @inline(__always) var isOwn: Bool { !flags.isDisjoint(with: [.parameterSets, .filler]) }

    /// Of one's own: the publisher's format whose payload type it has.
    var ownFormat: UInt8 {
        get { UInt8(truncatingIfNeeded: source) }
        set { source = UInt32(newValue) }
    }

    /// Of one's own: its whole timestamp.
    var ownTimestamp: UInt32 {
        get { timestampDelta }
        set { timestampDelta = newValue }
    }

    /// Of parameter sets: which of the layer's sets they are.
    var setsRevision: UInt16 {
        get { pictureDelta }
        set { pictureDelta = newValue }
    }
}

/// The last numbers of one subscription, by output sequence number.
///
/// Starts small and doubles while what would be overwritten is younger than a second, so that a 5 fps screen share does not pay
/// for what a 6 Mbit/s camera needs.
struct SentPacketRing: ~Copyable {
    private(set) var places: UnsafeMutablePointer<SentPacket>?
    private var mask: UInt32 = 0
    private let maximum: Int
    /// When the place 0 was last written: a lap is how long the ring lasts.
    private var lapStart = MonotonicTime.zero

    /// 6 Mbit/s x 1 s / 1,100 B = 700 video packets, next power of two and once more for bursts of small packets.
    static let maximumVideo = 2_048
    /// 100 packets/s (10 ms) x 1 s, next power of two.
    static let maximumAudio = 128

    /// A ring that holds at most `maximum` places (a power of two); none where nothing can be asked for again.
    init(maximum: Int) {
        self.maximum = maximum
        guard maximum > 0 else { return }
        let capacity = min(64, maximum)
        places = Self.allocate(capacity)
        mask = UInt32(capacity - 1)
    }

    deinit { places?.deallocate() }

    /// Whether it keeps anything.
    var isKeeping: Bool { places != nil }

    var memoryBytes: Int { places == nil ? 0 : (Int(mask) + 1) * MemoryLayout<SentPacket>.stride }

    private static func allocate(_ capacity: Int) -> UnsafeMutablePointer<SentPacket> {
        let places = UnsafeMutablePointer<SentPacket>.allocate(capacity: capacity)
        places.initialize(repeating: SentPacket(), count: capacity)
        return places
    }

    /// Asks for the place that `sequence` will be stored in.
    @inline(__always) func prefetch(_ sequence: UInt32) {
        if let places { Prefetch.lines(places + Int(sequence & mask), MemoryLayout<SentPacket>.size) }
    }

    /// The place of `sequence`, if it is still held.
    @inline(__always) func place(_ sequence: UInt32) -> UnsafeMutablePointer<SentPacket>? {
        guard let places else { return nil }
        let place = places + Int(sequence & mask)
        return place.pointee.sequence == sequence && place.pointee.flags.contains(.used) ? place : nil
    }

    /// The place of the newest extended number whose low 16 bits are `wire`, at or before `highest`.
    @inline(__always) func place(wire: UInt16, highest: UInt32) -> UnsafeMutablePointer<SentPacket>? {
        let behind = UInt32(UInt16(truncatingIfNeeded: highest) &- wire)
        return place(highest &- behind)
    }

    /// Keeps `packet` under its output number.
    @inline(__always) mutating func store(_ packet: SentPacket, at now: MonotonicTime) {
        guard let places else { return }
        if packet.sequence & mask == 0 { turnOver(at: now) }
        var current = self.places ?? places
        // What waits at the pacer is sent from here. A picture may come in one turn after minutes of small ones.
        let old = current[Int(packet.sequence & mask)].flags
        if old.contains(.used), !old.contains(.sent), Int(mask) + 1 < maximum {
            grow(from: current)
            current = self.places ?? current
        }
        current[Int(packet.sequence & mask)] = packet
    }

    /// One lap is over: doubles the ring when the lap was shorter than a second.
    private mutating func turnOver(at now: MonotonicTime) {
        let lap = now - lapStart
        lapStart = now
        guard let old = places, old[0].flags.contains(.used), lap < .seconds(1), Int(mask) + 1 < maximum else { return }
        grow(from: old)
    }

    private mutating func grow(from old: UnsafeMutablePointer<SentPacket>) {
        let capacity = Int(mask) + 1
        let grown = Self.allocate(capacity * 2)
        let newMask = UInt32(capacity * 2 - 1)
        for index in 0..<capacity where old[index].flags.contains(.used) {
            grown[Int(old[index].sequence & newMask)] = old[index]
        }
        old.deallocate()
        places = grown
        mask = newMask
    }
}
