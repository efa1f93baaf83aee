public import Foundation
public import Primitives

/// One packet that a real client sent, decrypted.
public struct CapturedPacket: Sendable {
    /// When it arrived, counted from the start of the capture.
    public let time: MonotonicTime
    /// Whether it is RTCP.
    public let isRTCP: Bool
    /// The datagram without SRTP's trailer.
    public let bytes: [UInt8]
}

/// Files in Tests/Vectors, found relative to this file's own path.
public enum Vectors {
    /// The folder.
    public static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Vectors")

    /// A text file by its path below the folder.
    public static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }
}

/// Captures of real clients in Tests/Vectors/rtp: lines of `seconds rtp|rtcp hex`.
public enum ClientCaptures {
    /// A line that is no packet.
    public struct Malformed: Error {
        /// The line's number, from 1.
        public let line: Int
    }

    /// All captures.
    public static let all = [
        "whip_chromium_av1_l3t3", "whip_chromium_h264_sim3", "whip_chromium_vp8_sim3", "whip_chromium_vp9_l3t3key",
        "whip_chromium_vp9_sim3", "whip_ffmpeg_h264", "whip_firefox_av1", "whip_firefox_vp8_sim3", "whip_gst_h264",
        "whip_gst_vp8_mtu1400",
    ]

    /// The packets of a capture in the order in which they arrived, such as `load("whip_chromium_vp8_sim3")`.
    public static func load(_ name: String) throws -> [CapturedPacket] {
        let text = try Vectors.text("rtp/\(name).rtphex")
        var packets: [CapturedPacket] = []
        for (index, line) in text.utf8.split(separator: UInt8(ascii: "\n")).enumerated() {
            let fields = line.split(separator: UInt8(ascii: " "))
            guard fields.count == 3, let seconds = Double(String(decoding: fields[0], as: UTF8.self)),
                let bytes = bytes(hex: fields[2])
            else { throw Malformed(line: index + 1) }
            let kind = String(decoding: fields[1], as: UTF8.self)
            packets.append(
                CapturedPacket(
                    time: MonotonicTime(nanoseconds: Int64(seconds * 1e9)), isRTCP: kind == "rtcp", bytes: bytes))
        }
        return packets
    }

    /// The offer that the client of a capture had sent.
    public static func offer(_ name: String) throws -> String { try Vectors.text("rtp/\(name).offer.sdp") }

    /// The bytes of a hexadecimal text; nil if it is none. Spaces and line breaks are skipped.
    public static func bytes(_ hex: String) -> [UInt8]? {
        bytes(hex: hex.utf8.filter { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\n") }[...])
    }

    private static func bytes(hex: some Collection<UInt8>) -> [UInt8]? {
        guard hex.count % 2 == 0 else { return nil }
        var result: [UInt8] = []
        result.reserveCapacity(hex.count / 2)
        var high: UInt8?
        for character in hex {
            guard let digit = digit(character) else { return nil }
            if let first = high {
                result.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        return result
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension [UInt8] {
    /// Calls `body` with the bytes in a slot of `capacity` bytes (at least as many), which it may change.
    public func withSlot<Result>(
        capacity: Int = 1500, _ body: (UnsafeMutableRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: Swift.max(capacity, count), alignment: 8)
        defer { slot.deallocate() }
        slot.initializeMemory(as: UInt8.self, repeating: 0)
        slot.copyBytes(from: self)
        return try body(slot)
    }
}
