internal import PayloadFormats
internal import Primitives

/// The H.264 parameter sets in force on one layer (RFC 6184), for encoders that send them only once, or only in their description.
///
/// A decoder can start only with SPS and PPS before the IDR. Sets are keyed by type and id, so a new one replaces its
/// predecessor.
public struct ParameterSetCache: Sendable {
    /// Maximum bytes of all sets together. Real ones have 10 to 60 bytes; a set that would not fit one packet with the others is not kept.
    static let maximumBytes = 1000
    static let maximumSets = 16

    struct ParameterSet: Sendable, Hashable {
        var isSequence: Bool
        var id: UInt32
        var bytes: [UInt8]
    }

    private(set) var sets: [ParameterSet] = []
    /// Counts changes, to distinguish sets that were already sent from newer ones.
    private(set) var revision: UInt16 = 0

    public init() {}

    /// Whether both kinds are known.
    public var isComplete: Bool { sets.contains { $0.isSequence } && sets.contains { !$0.isSequence } }

    /// The size of the frames; nil unless there is one sequence parameter set.
    var dimensions: FrameDimensions? {
        guard let first = sets.first, first.isSequence, !sets.dropFirst().contains(where: { $0.isSequence }) else {
            return nil
        }
        return SequenceParameterSet(first.bytes.span.bytes, offset: 0, length: first.bytes.count)?.dimensions
    }

    /// Bytes that `writeSTAPA` writes.
    public var stapALength: Int { 1 + sets.reduce(0) { $0 + 2 + $1.bytes.count } }

    /// Stores one NAL unit that is a parameter set. Sets that are already stored cost no allocation.
    mutating func insert(_ bytes: UnsafeRawBufferPointer, isSequence: Bool, id: UInt32) {
        guard !bytes.isEmpty, bytes.count < Self.maximumBytes else { return }
        if let index = sets.firstIndex(where: { $0.isSequence == isSequence && $0.id == id }) {
            if sets[index].bytes.count == bytes.count, sets[index].bytes.elementsEqual(bytes) { return }
            sets.remove(at: index)
        }
        revision &+= 1
        let used = sets.reduce(0) { $0 + 2 + $1.bytes.count }
        guard sets.count < Self.maximumSets, used + 2 + bytes.count <= Self.maximumBytes else { return }
        let set = ParameterSet(isSequence: isSequence, id: id, bytes: Array(bytes))
        // SPS before PPS, as a decoder needs them.
        let position = isSequence ? (sets.firstIndex { !$0.isSequence } ?? sets.count) : sets.count
        sets.insert(set, at: position)
    }

    /// Writes the sets as one STAP-A payload (RFC 6184 section 5.7.1), SPS first; the length, or nil when it does not fit.
    public func writeSTAPA(into output: UnsafeMutableRawBufferPointer) -> Int? {
        guard isComplete, output.count >= stapALength else { return nil }
        // NRI is the highest of the contained units: 3 for parameter sets.
        output.write(UInt8(3 << 5 | 24), at: 0)
        var offset = 1
        for set in sets {
            output.write(UInt16(set.bytes.count), at: offset)
            set.bytes.withUnsafeBytes {
                output.baseAddress!.advanced(by: offset + 2).copyMemory(from: $0.baseAddress!, byteCount: $0.count)
            }
            offset += 2 + set.bytes.count
        }
        return offset
    }
}
