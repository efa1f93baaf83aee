import MP4
import Movies
import PayloadFormats
import Primitives

/// An H.264 access unit that is being assembled: every NAL unit with its length in front, without parameter sets and delimiters (RFC 6184 to ISO/IEC 14496-15).
struct H264Frame {
    private(set) var bytes: [UInt8] = []
    private(set) var isKeyframe = false
    /// Where the length of an unfinished unit is.
    private var open: Int?
    /// A fragment's rest without its start.
    private(set) var isBroken = false
    private var sets = ParameterSets()
    /// Sets arrived that differ from those of the last keyframe.
    private(set) var setsChanged = false

    /// Processes a packet's payload; false when it is malformed.
    mutating func append(_ payload: RawSpan) -> Bool {
        guard var units = H264.Units(payload) else { return false }
        while let unit = units.next(in: payload) {
            switch unit.type {
            case H264.sequenceParameterSet, H264.pictureParameterSet:
                guard unit.isWhole else { return false }
                setsChanged = sets.insert(payload, unit) || setsChanged
            case H264.accessUnitDelimiter: break
            default: append(unit, payload)
            }
        }
        return !isBroken
    }

    private mutating func append(_ unit: H264.Unit, _ payload: RawSpan) {
        if unit.isStart {
            isBroken = isBroken || open != nil
            open = bytes.count
            bytes.append(contentsOf: [0, 0, 0, 0])
            // A fragment's header is split over two bytes (RFC 6184 section 5.8).
            if !unit.isEnd { bytes.append(payload.readUInt8(0) & 0xe0 | unit.type) }
        }
        guard let start = open else {
            isBroken = true
            return
        }
        payload.extracting(unit.offset..<(unit.offset + unit.length)).withUnsafeBytes { bytes.append(contentsOf: $0) }
        if unit.type == H264.instantaneousRefresh { isKeyframe = true }
        guard unit.isEnd else { return }
        let length = UInt32(bytes.count - start - 4)
        for index in 0..<4 { bytes[start + index] = UInt8(truncatingIfNeeded: length >> UInt32(24 - 8 * index)) }
        open = nil
    }

    /// The frame is complete: its bytes and, for a keyframe, the format from it on. nil when there is no frame to store.
    mutating func finish() -> (bytes: [UInt8], entry: SampleEntry?)? {
        defer { beginNext() }
        guard !isBroken, open == nil, !bytes.isEmpty else { return nil }
        guard isKeyframe else { return setsChanged ? nil : (bytes, nil) }
        guard let entry = sets.entry else { return nil }
        setsChanged = false
        return (bytes, entry)
    }

    /// Drops the incomplete frame; sets stay.
    mutating func beginNext() {
        bytes.removeAll(keepingCapacity: true)
        (isKeyframe, isBroken, open) = (false, false, nil)
    }
}

/// The parameter sets in force, by id.
private struct ParameterSets {
    private var sequenceSets: [Int: [UInt8]] = [:]
    private var pictureSets: [Int: [UInt8]] = [:]

    /// Stores a set; returns whether it changes anything.
    mutating func insert(_ payload: RawSpan, _ unit: H264.Unit) -> Bool {
        let bytes = payload.extracting(unit.offset..<(unit.offset + unit.length)).withUnsafeBytes { Array($0) }
        if let set = SequenceParameterSet(payload, unit) {
            guard sequenceSets[set.id] != bytes else { return false }
            sequenceSets[set.id] = bytes
            return true
        }
        guard let id = H264.pictureParameterSetID(payload, unit), pictureSets[Int(id)] != bytes else { return false }
        pictureSets[Int(id)] = bytes
        return true
    }

    /// The format; nil without a sequence and a picture parameter set.
    var entry: SampleEntry? {
        let ordered = sequenceSets.sorted { $0.key < $1.key }.map(\.value)
        guard let first = ordered.first, !pictureSets.isEmpty,
            let set = SequenceParameterSet(first.span.bytes, offset: 0, length: first.count)
        else { return nil }
        return .h264(
            sequenceSets: ordered, pictureSets: pictureSets.sorted { $0.key < $1.key }.map(\.value),
            VideoSize(width: set.dimensions.width, height: set.dimensions.height))
    }
}
