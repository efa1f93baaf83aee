import PayloadFormats
import Primitives

/// Converts access units with length prefixes to the payload format of RFC 6184: parameter sets in one STAP-A before each IDR picture, NAL units unchanged,
/// larger ones in fragments (FU-A).
struct H264Packetizer: Sendable {
    private let lengthSize: Int
    /// The parameter sets in force: those of the format description, or the last that came in a sample.
    private var sets: [[UInt8]]

    private static let aggregation: UInt8 = 24
    private static let fragment: UInt8 = 28
    private static let filler: UInt8 = 12

    init(lengthSize: Int, _ sets: [[UInt8]]) {
        self.lengthSize = lengthSize
        self.sets = sets
    }

    /// False where the lengths do not add up.
    mutating func append(_ sample: UnsafeRawBufferPointer, _ header: inout Header, _ list: inout PacketList) -> Bool {
        guard let isRefresh = look(through: sample) else { return false }
        if isRefresh {
            guard !sets.isEmpty else { return false }
            appendSets(&header, &list)
        }
        var position = 0
        while let unit = nextUnit(in: sample, &position) {
            switch sample[unit.lowerBound] & 0x1f {
            case H264.accessUnitDelimiter, Self.filler: break
            // They went ahead.
            case H264.sequenceParameterSet, H264.pictureParameterSet:
                if !isRefresh { append(unit, sample, &header, &list) }
            default: append(unit, sample, &header, &list)
            }
        }
        return true
    }

    /// Checks the lengths and stores the parameter sets; returns whether it is an IDR picture, nil if the lengths are wrong or there are too many units.
    private mutating func look(through sample: UnsafeRawBufferPointer) -> Bool? {
        var position = 0
        var isRefresh = false
        var found: [[UInt8]] = []
        var hasSequenceSet = false, hasPictureSet = false
        var count = 0
        while let unit = nextUnit(in: sample, &position) {
            count += 1
            guard count <= PacketList.maximumUnits else { return nil }
            switch sample[unit.lowerBound] & 0x1f {
            case H264.instantaneousRefresh: isRefresh = true
            case H264.sequenceParameterSet:
                found.append(Array(sample[unit]))
                hasSequenceSet = true
            case H264.pictureParameterSet:
                found.append(Array(sample[unit]))
                hasPictureSet = true
            default: break
            }
        }
        guard position == sample.count else { return nil }
        if hasSequenceSet, hasPictureSet { sets = found }
        return isRefresh
    }

    /// The next unit's bytes; nil at the end, and if a length is wrong: then `position` is before the end.
    private func nextUnit(in sample: UnsafeRawBufferPointer, _ position: inout Int) -> Range<Int>? {
        guard position + lengthSize < sample.count else { return nil }
        var length = 0
        for index in 0..<lengthSize { length = length << 8 | Int(sample[position + index]) }
        let start = position + lengthSize
        guard length > 0, length <= sample.count - start else { return nil }
        position = start + length
        return start..<(start + length)
    }

    private func appendSets(_ header: inout Header, _ list: inout PacketList) {
        let length = 1 + sets.reduce(0) { $0 + 2 + $1.count }
        guard sets.count > 1, length <= PacketList.maximumPayload else {
            for set in sets {
                set.withUnsafeBytes { append(0..<set.count, $0, &header, &list) }
            }
            return
        }
        header.begin(&list)
        // The highest nal_ref_idc of what it holds (section 5.7).
        list.append(sets.reduce(0) { max($0, $1[0] & 0x60) } | Self.aggregation)
        for set in sets {
            list.append(UInt8(truncatingIfNeeded: set.count >> 8))
            list.append(UInt8(truncatingIfNeeded: set.count))
            list.append(set)
        }
        list.endPacket()
    }

    private func append(
        _ unit: Range<Int>, _ sample: UnsafeRawBufferPointer, _ header: inout Header, _ list: inout PacketList
    ) {
        guard unit.count > PacketList.maximumPayload else {
            header.begin(&list)
            list.append(unit, of: sample)
            list.endPacket()
            return
        }
        // Parts of equal size: the last is not a small one of its own.
        let first = sample[unit.lowerBound], length = unit.count - 1, room = PacketList.maximumPayload - 2
        let parts = (length + room - 1) / room
        for part in 0..<parts {
            let from = unit.lowerBound + 1 + length * part / parts
            let to = unit.lowerBound + 1 + length * (part + 1) / parts
            header.begin(&list)
            list.append(first & 0xe0 | Self.fragment)
            list.append(first & 0x1f | (part == 0 ? 0x80 : 0) | (part == parts - 1 ? 0x40 : 0))
            list.append(from..<to, of: sample)
            list.endPacket()
        }
    }
}
