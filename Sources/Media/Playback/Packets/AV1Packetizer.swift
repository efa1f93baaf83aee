import PayloadFormats
import Primitives

/// Converts AV1 temporal units to the RTP payload format for AV1 1.0: OBUs without sizes, temporal delimiters and padding; every element with its length
/// (W = 0).
struct AV1Packetizer: Sendable {
    /// The OBUs of the format description.
    private let configuration: [UInt8]

    /// Temporal delimiter, tile list, padding.
    private static let leftOut: Set<UInt8> = [2, 8, 15]
    /// A smaller part of an element is not worth its length field.
    private static let leastPart = 16

    init(_ configuration: [UInt8]) { self.configuration = configuration }

    /// One OBU: its header with obu_has_size_field cleared, and where its content is.
    private struct Unit {
        var type: UInt8
        var header: [UInt8]
        var content: Range<Int>
        var length: Int { header.count + content.count }
    }

    func append(
        _ sample: UnsafeRawBufferPointer, isSync: Bool, _ header: inout Header, _ list: inout PacketList
    ) -> Bool {
        guard let units = Self.units(sample.bytes) else { return false }
        var writer = Writer(startsSequence: isSync)
        if isSync, !units.contains(where: { $0.type == AV1.sequenceHeader }),
            let described = Self.units(configuration.span.bytes)
        {
            configuration.withUnsafeBytes { bytes in
                for unit in described where unit.type == AV1.sequenceHeader {
                    writer.append(unit.header, unit.content, of: bytes, &header, &list)
                }
            }
        }
        for unit in units where !Self.leftOut.contains(unit.type) {
            writer.append(unit.header, unit.content, of: sample, &header, &list)
        }
        writer.finish(&list)
        return true
    }

    /// nil if a size is wrong, or missing except in the last OBU, and if there are too many OBUs.
    private static func units(_ bytes: RawSpan) -> [Unit]? {
        var units: [Unit] = []
        var position = 0
        while position < bytes.byteCount {
            let first = bytes.readUInt8(position)
            guard first & 0x80 == 0, units.count < PacketList.maximumUnits else { return nil }
            var header = [first & ~2]
            position += 1
            if first & 4 != 0 {
                guard position < bytes.byteCount else { return nil }
                header.append(bytes.readUInt8(position))
                position += 1
            }
            var end = bytes.byteCount
            if first & 2 != 0 {
                guard let size = LEB128.read(bytes, &position, end: end), Int(size) <= end - position else {
                    return nil
                }
                end = position + Int(size)
            }
            units.append(Unit(type: first >> 3 & 0x0f, header: header, content: position..<end))
            position = end
        }
        return units.isEmpty ? nil : units
    }

    /// Fills packets with elements.
    private struct Writer {
        /// The next packet begins a coded video sequence.
        var startsSequence: Bool
        /// Where the aggregation header of the open packet is.
        private var open: Int?

        init(startsSequence: Bool) { self.startsSequence = startsSequence }

        mutating func append(
            _ obuHeader: [UInt8], _ content: Range<Int>, of bytes: UnsafeRawBufferPointer, _ header: inout Header,
            _ list: inout PacketList
        ) {
            var headerLeft = obuHeader[...]
            var left = content
            var continues = false
            repeat {
                if open == nil { begin(continues: continues, &header, &list) }
                let room = PacketList.maximumPacket - list.openLength
                let whole = headerLeft.count + left.count
                // Two bytes of length reach 16,383.
                guard room >= min(whole + 2, AV1Packetizer.leastPart + 2) else {
                    endPacket(continues: continues, &list)
                    continue
                }
                let length = min(whole, room - 2)
                list.append(LEB128.bytes(UInt32(length)))
                list.append(headerLeft)
                let part = length - headerLeft.count
                list.append(left.lowerBound..<(left.lowerBound + part), of: bytes)
                left = (left.lowerBound + part)..<left.upperBound
                headerLeft = []
                continues = !left.isEmpty
                if continues { endPacket(continues: true, &list) }
            } while continues || !headerLeft.isEmpty
        }

        private mutating func begin(continues: Bool, _ header: inout Header, _ list: inout PacketList) {
            header.begin(&list)
            open = list.bytes.count
            // Z, and N at the first packet.
            list.append((continues ? 0x80 : 0) | (startsSequence ? 0x08 : 0))
            startsSequence = false
        }

        /// `continues`: the last element continues in the next packet (Y).
        private mutating func endPacket(continues: Bool, _ list: inout PacketList) {
            guard let open else { return }
            if continues { list.set(list.bytes[open] | 0x40, at: open) }
            list.endPacket()
            self.open = nil
        }

        mutating func finish(_ list: inout PacketList) { endPacket(continues: false, &list) }
    }
}
