public import Primitives

/// A fingerprint of everything that happened in a run (FNV-1a's step over words of 64 bits, with a shift so that high bits
/// reach low ones): two runs of one seed must have the same.
public struct RunDigest: Sendable, Hashable {
    /// The fingerprint so far.
    public private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    /// Nothing has happened.
    public init() {}

    /// Adds one number.
    public mutating func add(_ number: UInt64) {
        value = (value ^ number) &* 0x0000_0100_0000_01b3
        value ^= value >> 29
    }

    /// Adds a moment and a datagram that arrived then.
    public mutating func add(_ bytes: UnsafeRawBufferPointer, at time: MonotonicTime) {
        add(UInt64(bitPattern: time.nanoseconds))
        add(UInt64(bytes.count))
        let words = bytes.count / 8
        for word in 0..<words { add(bytes.loadUnaligned(fromByteOffset: 8 * word, as: UInt64.self).bigEndian) }
        for index in (8 * words)..<bytes.count { add(UInt64(bytes[index])) }
    }

    /// Adds a moment and words that describe what happened then.
    public mutating func add(_ text: String, at time: MonotonicTime) {
        add(UInt64(bitPattern: time.nanoseconds))
        for byte in text.utf8 { add(UInt64(byte)) }
    }
}
