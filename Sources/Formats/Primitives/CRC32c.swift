internal import CProcessor

/// The checksum CRC32c (Castagnoli), which SCTP uses (RFC 9260 section 6.8).
public struct CRC32c {
    private var state = ~UInt32(0)

    /// The checksum of nothing yet.
    public init() {}

    /// Continues with more bytes.
    public mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        state = cprocessor_crc32c(state, start, bytes.count)
    }

    /// The checksum so far.
    public var value: UInt32 { ~state }

    /// The checksum of `bytes` from the table that processors without the instructions use; for tests, which may run on a processor that has them.
    static func portable(of bytes: UnsafeRawBufferPointer) -> UInt32 {
        bytes.baseAddress.map { ~cprocessor_crc32c_portable(~0, $0, bytes.count) } ?? 0
    }
}
