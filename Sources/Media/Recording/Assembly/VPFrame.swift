import MP4
import Movies
import PayloadFormats
import Primitives

/// A VP8 or VP9 frame that is being assembled: payloads without their descriptors.
///
/// The frames of several VP9 spatial layers become one superframe (VP9 bitstream specification annex B), of which the last is shown: encoders mark each layer
/// as shown, and some decoders (libavcodec's, and so Firefox's) would show each.
struct VPFrame {
    private let isVP9: Bool
    private var bytes: [UInt8] = []
    /// Where each layer's frame ends.
    private var ends: [Int] = []
    private var entry: SampleEntry?
    private var isBroken = false
    private var headers = VP9FrameHeaders()
    /// Frames of one superframe (VP9 bitstream specification annex B): its index has three bits for their count.
    private static let mostLayers = 8

    init(isVP9: Bool) { self.isVP9 = isVP9 }

    /// Processes a packet's payload with its summary; false when it is malformed.
    mutating func append(_ payload: RawSpan, _ summary: PayloadSummary) -> Bool {
        let start = isVP9 ? VP9.descriptorLength(of: payload) : FrameNumbers(vp8: payload).end
        guard let start, start >= 0, start < payload.byteCount else {
            isBroken = true
            return false
        }
        if summary.startsKeyframe {
            guard let size = size(summary, payload, start) else {
                isBroken = true
                return false
            }
            entry = isVP9 ? .vp9(profile: VP9.profile(of: payload, at: start), level: 10, size) : .vp8(size)
        }
        payload.extracting(start..<payload.byteCount).withUnsafeBytes { bytes.append(contentsOf: $0) }
        guard isVP9, summary.endsFrame else { return true }
        ends.append(bytes.count)
        isBroken = isBroken || ends.count > Self.mostLayers
        return !isBroken
    }

    /// The size in the frame's own header, not that of the layers above which may not have been sent.
    private func size(_ summary: PayloadSummary, _ payload: RawSpan, _ start: Int) -> VideoSize? {
        let size = isVP9 ? summary.dimensions ?? VP9.dimensions(ofKeyframe: payload, at: start) : summary.dimensions
        return size.flatMap { $0.width > 0 && $0.height > 0 ? VideoSize(width: $0.width, height: $0.height) : nil }
    }

    /// The frame is complete; nil when there is nothing to store.
    mutating func finish() -> (bytes: [UInt8], entry: SampleEntry?)? {
        defer { beginNext() }
        guard !isBroken, !bytes.isEmpty else { return nil }
        if ends.count > 1 {
            guard ends.last == bytes.count else { return nil }
            hideLowerLayers()
            appendIndex()
        } else if isVP9 {
            // Later frames may have its size. The span reads this value, so its headers are changed outside of it.
            var headers = headers
            _ = headers.next(bytes.span.bytes)
            self.headers = headers
        }
        return (bytes, entry)
    }

    private mutating func hideLowerLayers() {
        var (start, changed) = (0, [UInt8]())
        changed.reserveCapacity(bytes.count + ends.count)
        for (index, end) in ends.enumerated() {
            let frame = Array(bytes[start..<end])
            let header = headers.next(frame.span.bytes)
            changed += index == ends.count - 1 ? frame : header?.hiding(frame) ?? frame
            (start, ends[index]) = (end, changed.count)
        }
        bytes = changed
    }

    /// The index at a superframe's end: marker, sizes in little endian, marker.
    private mutating func appendIndex() {
        var start = 0
        let sizes = ends.map { end in
            defer { start = end }
            return end - start
        }
        let marker = 0b1100_0000 | UInt8(3) << 3 | UInt8(sizes.count - 1)
        bytes.append(marker)
        for size in sizes {
            for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: size >> shift)) }
        }
        bytes.append(marker)
    }

    mutating func beginNext() {
        bytes.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
        (entry, isBroken) = (nil, false)
    }
}
