/// What a publisher writes after the last payload of each frame, and a subscriber reads after decryption: which stream of
/// this run, which packet of it, and when it was sent.
///
/// ```text
/// |  magic (4)  | stream (4) | counter (4) | send time in ns (8) | check (4) |
/// ```
/// Packets between two traces need none: their sequence number is as far from the traced one as their counter is, the
/// publisher's ledger says what such a packet contained and when it was sent, and the payload is compared with it.
struct Trace: Hashable {
    static let length = 24
    private static let magic: UInt32 = 0x4d6c_5472
    /// Every byte is combined with this by XOR, so that small numbers are not rows of zeros, which H.264 would mistake for a start code.
    private static let turned = Int64(bitPattern: 0xa5a5_a5a5_a5a5_a5a5)

    /// The sending stream's index in its media thread.
    var stream: UInt32
    /// The number of the packet in its stream, from 0.
    var counter: UInt32
    /// Nanoseconds on the machine's monotonic clock.
    var time: Int64

    init(stream: UInt32, counter: UInt32, time: Int64) {
        self.stream = stream
        self.counter = counter
        self.time = time
    }

    /// The trace at `bytes`; nil if there is none or it is damaged.
    init?(_ bytes: UnsafeRawPointer) {
        guard bytes.loadUnaligned(as: UInt32.self) == Self.magic ^ UInt32(truncatingIfNeeded: Self.turned),
            bytes.loadUnaligned(fromByteOffset: 20, as: UInt32.self) == Self.check(bytes)
        else { return nil }
        stream = bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self) ^ UInt32(truncatingIfNeeded: Self.turned)
        counter = bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self) ^ UInt32(truncatingIfNeeded: Self.turned)
        time = bytes.loadUnaligned(fromByteOffset: 12, as: Int64.self) ^ Self.turned
    }

    func write(to bytes: UnsafeMutableRawPointer) {
        let turned = UInt32(truncatingIfNeeded: Self.turned)
        bytes.storeBytes(of: Self.magic ^ turned, as: UInt32.self)
        bytes.storeBytes(of: stream ^ turned, toByteOffset: 4, as: UInt32.self)
        bytes.storeBytes(of: counter ^ turned, toByteOffset: 8, as: UInt32.self)
        bytes.storeBytes(of: time ^ Self.turned, toByteOffset: 12, as: Int64.self)
        bytes.storeBytes(of: Self.check(bytes), toByteOffset: 20, as: UInt32.self)
    }

    /// FNV-1a over the twenty bytes before the check.
    private static func check(_ bytes: UnsafeRawPointer) -> UInt32 {
        var value: UInt32 = 0x811c_9dc5
        for offset in 0..<20 {
            value = (value ^ UInt32(bytes.load(fromByteOffset: offset, as: UInt8.self))) &* 0x0100_0193
        }
        return value
    }
}
