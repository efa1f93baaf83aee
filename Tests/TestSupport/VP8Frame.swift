/// The parts of a VP8 packet that every test's publisher needs, written by hand from the RFCs. The server writes no frame headers, and descriptors only for
/// files that it plays (`VP8Packetizer`); simulated clients and benchmarks have a writer of their own (`SyntheticVideo`), because sources do not import tests,
/// and this module, which nearly every test imports, does not build the engine that Simulation needs.
public enum VP8Frame {
    /// The payload descriptor with all fields: 15-bit picture id, TL0PICIDX and KEYIDX (RFC 7741 section 4.2).
    public static func descriptor(
        startsFrame: Bool, pictureID: UInt16, temporalZero: UInt8, keyIndex: UInt8
    ) -> [UInt8] {
        [
            0x80 | (startsFrame ? 0x10 : 0), 0xf0, 0x80 | UInt8(pictureID >> 8), UInt8(truncatingIfNeeded: pictureID),
            temporalZero, keyIndex,
        ]
    }

    /// The frame header of a keyframe with its size (RFC 6386 section 9.1).
    public static func keyframeHeader(width: UInt16, height: UInt16) -> [UInt8] {
        [
            0, 0, 0, 0x9d, 0x01, 0x2a, UInt8(truncatingIfNeeded: width), UInt8(width >> 8),
            UInt8(truncatingIfNeeded: height), UInt8(height >> 8),
        ]
    }

    /// The frame header of a delta frame.
    public static let deltaHeader: [UInt8] = [1, 0, 0]
}
