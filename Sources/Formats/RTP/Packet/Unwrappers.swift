/// Extends 16-bit sequence numbers to numbers that never wrap (RFC 3550 appendix A.1), in whatever order packets arrive.
///
/// A number is taken as the nearest one to the last: up to 32,767 ahead or 32,768 behind. The first number keeps its
/// value plus 65,536, so that packets from before it stay positive.
public struct SequenceUnwrapper: Sendable, Hashable {
    /// The last extended number; nil before the first.
    public private(set) var last: Int64?

    /// One that has seen nothing.
    public init() {}

    /// The extended number of `sequenceNumber`; it becomes the reference for the next.
    @inlinable public mutating func unwrap(_ sequenceNumber: UInt16) -> Int64 {
        let extended = peek(sequenceNumber)
        setLast(extended)
        return extended
    }

    /// The extended number of `sequenceNumber` without changing the reference: for numbers in feedback.
    @inlinable public func peek(_ sequenceNumber: UInt16) -> Int64 {
        guard let last else { return Int64(sequenceNumber) + 0x1_0000 }
        return last + Int64(Int16(bitPattern: sequenceNumber &- UInt16(truncatingIfNeeded: last)))
    }

    /// Makes `extended` the reference.
    public mutating func setLast(_ extended: Int64) { last = extended }
}
