public import Primitives

/// A fingerprint of everything that happened in a run (FNV-1a over 64 bits): two runs of one seed must have the same.
public struct RunDigest: Sendable, Hashable {
    /// The fingerprint so far.
    public private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    /// Nothing has happened.
    public init() {}

    /// Adds one number.
    public mutating func add(_ number: UInt64) {
        for shift in stride(from: 0, to: 64, by: 8) { step(UInt8(truncatingIfNeeded: number >> UInt64(shift))) }
    }

    /// Adds a moment and a datagram that arrived then.
    public mutating func add(_ bytes: UnsafeRawBufferPointer, at time: MonotonicTime) {
        add(UInt64(bitPattern: time.nanoseconds))
        for byte in bytes { step(byte) }
    }

    private mutating func step(_ byte: UInt8) {
        value = (value ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
    }
}
