internal import PayloadFormats
public import Primitives

/// The packets of one layer of the last second or so, stored once for all subscribers and all retransmissions.
///
/// ```text
///   bytes   ring, written in order of arrival          index   open slots, sequence & mask
///   +------+---------+----+~~~~~~~+------+              +-----+-----+-----+-----+
///   |  p7  |   p9    | p8 | free  |  p6  |              | r8  | r9  | r6  | r7  |
///   +------+---------+----+~~~~~~~+------+              +-----+-----+-----+-----+
///                         ^ head                          each holds its position in the stream of all bytes ever written
/// ```
///
/// A record is valid while `head - position <= capacity`: writing needs no eviction walk, a late (repaired) packet is
/// inserted like any other, and a look-up is one load and two compares. Both parts start small and double, up to their bounds, while the data
/// that would be overwritten is younger than `Limits.retention`.
///
/// It is no jitter buffer: nothing is reordered here.
public struct PacketHistory: ~Copyable {
    /// Bounds of one history.
    public struct Limits: Sendable {
        /// Initial bytes.
        public var initialBytes: Int
        /// Maximum bytes.
        public var maximumBytes: Int
        /// Maximum records; a power of two.
        public var maximumRecords: Int
        /// Younger packets are not overwritten while the history may still grow.
        public var retention: TimeSpan

        /// 160 kbit/s (music, RED) x 1 s = 20 kB, and 100 packets/s (10 ms) x 56 B header, rounded up.
        public static let audio = Limits(
            initialBytes: 4 << 10, maximumBytes: 32 << 10, maximumRecords: 128, retention: .seconds(1))
        /// A layer of 6 Mbit/s x 1 s = 750 kB, and room for one keyframe of 200 kB, rounded up to 1 MiB.
        /// 1 MiB / 1,100 B = 953 packets; small packets (screen, 5 fps) are bounded by time: 1,024 records.
        public static let video = Limits(
            initialBytes: 64 << 10, maximumBytes: 1 << 20, maximumRecords: 1024, retention: .seconds(1))

        public init(initialBytes: Int, maximumBytes: Int, maximumRecords: Int, retention: TimeSpan) {
            self.initialBytes = initialBytes
            self.maximumBytes = maximumBytes
            self.maximumRecords = maximumRecords
            self.retention = retention
        }
    }

    /// Maximum packet length: UDP carries 65,535 bytes, but packets above a path's 1,500 bytes are not expected here.
    public static let maximumPacketLength = 2048

    private let limits: Limits
    private var bytes: UnsafeMutableRawPointer
    private var capacity: Int
    private var records: UnsafeMutablePointer<PacketRecord>
    private var mask: Int64
    /// Bytes ever written; positions count from the start of that stream.
    private var head: Int64 = 0
    /// When each sixteenth of the ring was last written, `.zero` for never: the minimum age of the data that would be overwritten.
    private var written = InlineArray<16, MonotonicTime>(repeating: .zero)
    /// The sixteenth being written.
    private var sector = -1
    /// The highest extended sequence number stored; `.min` before the first packet.
    public private(set) var highest: Int64 = .min

    public init(_ limits: Limits) {
        self.limits = limits
        capacity = limits.initialBytes
        bytes = .allocate(byteCount: capacity, alignment: 64)
        let recordCount = min(32, limits.maximumRecords)
        mask = Int64(recordCount - 1)
        records = .allocate(capacity: recordCount)
        records.initialize(repeating: Self.emptyRecord, count: recordCount)
    }

    deinit {
        bytes.deallocate()
        records.deallocate()
    }

    /// Bytes of memory in use.
    public var memoryBytes: Int { capacity + (Int(mask) + 1) * MemoryLayout<PacketRecord>.stride }

    /// The record of `sequence`, valid until the next insertion; nil when it never arrived or was overwritten.
    @inline(__always) public func record(_ sequence: Int64) -> UnsafePointer<PacketRecord>? {
        let record = records + Int(sequence & mask)
        guard record.pointee.sequence == sequence, head &- record.pointee.position <= Int64(capacity) else {
            return nil
        }
        return UnsafePointer(record)
    }

    /// The bytes of `record`, valid until the next insertion.
    @inline(__always) public func packet(_ record: UnsafePointer<PacketRecord>) -> UnsafeRawBufferPointer {
        let offset = Int(record.pointee.position & Int64(capacity &- 1))
        return UnsafeRawBufferPointer(start: bytes + offset, count: Int(record.pointee.length))
    }

    /// The payload of `record`, valid until the next insertion.
    @inline(__always) public func payload(_ record: UnsafePointer<PacketRecord>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: packet(record)[Int(record.pointee.payloadOffset)...])
    }

    /// Stores a packet; `record.position` is set here. The same sequence number must not be stored twice.
    mutating func insert(_ packet: UnsafeRawBufferPointer, _ record: PacketRecord) {
        precondition(
            packet.count > 0 && packet.count <= Self.maximumPacketLength, "length outside the history's bounds")
        makeRoomForRecord(record.sequence, at: record.arrival)
        let offset = makeRoomForBytes(packet.count, at: record.arrival)
        (bytes + offset).copyMemory(from: packet.baseAddress!, byteCount: packet.count)
        let slot = records + Int(record.sequence & mask)
        slot.pointee = record
        slot.pointee.position = head
        // 16-byte steps keep copies out of the ring aligned.
        head += Int64((packet.count + 15) & ~15)
        if record.sequence > highest { highest = record.sequence }
    }

    /// The offset at which to write `length` bytes.
    private mutating func makeRoomForBytes(_ length: Int, at now: MonotonicTime) -> Int {
        while true {
            var next = head
            var offset = Int(head & Int64(capacity - 1))
            if offset + length > capacity {
                // Packets are contiguous: skip the rest of the ring.
                next += Int64(capacity - offset)
                offset = 0
            }
            let first = offset / sectorBytes, last = (offset + length - 1) / sectorBytes
            if first != sector || last != sector {
                if capacity < limits.maximumBytes, isWithinRetention(first, last, at: now) {
                    growBytes()
                    continue
                }
                for index in first...last { written[index] = now }
                sector = last
            }
            written[last] = now
            head = next
            return offset
        }
    }

    private var sectorBytes: Int { capacity / 16 }

    /// Whether data in these sixteenths, other than the one being written, is too young to overwrite.
    private func isWithinRetention(_ first: Int, _ last: Int, at now: MonotonicTime) -> Bool {
        for index in first...last where index != sector && written[index] != .zero {
            if now - written[index] < limits.retention { return true }
        }
        return false
    }

    private mutating func makeRoomForRecord(_ sequence: Int64, at now: MonotonicTime) {
        while Int(mask) + 1 < limits.maximumRecords {
            let old = records + Int(sequence & mask)
            guard record(old.pointee.sequence) != nil, now - old.pointee.arrival < limits.retention else { return }
            growRecords()
        }
    }

    /// Doubles the ring; every valid packet keeps its position.
    private mutating func growBytes() {
        // Overwritten records must not become valid under the larger capacity.
        for index in 0...Int(mask) where head - records[index].position > Int64(capacity) {
            records[index] = Self.emptyRecord
        }
        let grown = UnsafeMutableRawPointer.allocate(byteCount: capacity * 2, alignment: 64)
        // Before `offset` is the current lap, after it the rest of the previous one.
        let offset = Int(head & Int64(capacity - 1))
        let lap = Int((head - Int64(offset)) & Int64(capacity * 2 - 1)), before = lap ^ capacity
        (grown + lap).copyMemory(from: bytes, byteCount: offset)
        (grown + before + offset).copyMemory(from: bytes + offset, byteCount: capacity - offset)
        bytes.deallocate()
        bytes = grown
        var marks = InlineArray<16, MonotonicTime>(repeating: .zero)
        for old in 0..<16 {
            let start = old * sectorBytes
            if start < offset { marks[(lap + start) / (2 * sectorBytes)].raise(to: written[old]) }
            if start + sectorBytes > offset { marks[(before + start) / (2 * sectorBytes)].raise(to: written[old]) }
        }
        written = marks
        capacity *= 2
        sector = Int((head - 1) & Int64(capacity - 1)) / sectorBytes
    }

    private mutating func growRecords() {
        let oldCount = Int(mask) + 1
        let grown = UnsafeMutablePointer<PacketRecord>.allocate(capacity: oldCount * 2)
        grown.initialize(repeating: Self.emptyRecord, count: oldCount * 2)
        let newMask = Int64(oldCount * 2 - 1)
        for index in 0..<oldCount where records[index].sequence != .min {
            grown[Int(records[index].sequence & newMask)] = records[index]
        }
        records.deallocate()
        records = grown
        mask = newMask
    }

    private static var emptyRecord: PacketRecord {
        PacketRecord(
            sequence: .min, timestamp: 0, arrival: .zero, position: .min / 2, length: 0, payloadOffset: 0,
            payloadType: 0,
            flags: [], audioLevel: 255, format: 0, extensions: ExtensionLocations(), summary: PayloadSummary())
    }
}

extension MonotonicTime {
    fileprivate mutating func raise(to other: Self) { self = max(self, other) }
}
