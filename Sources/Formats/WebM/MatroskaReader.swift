public import Movies
import PayloadFormats
import Primitives

/// Finds the tracks and samples of a WebM or Matroska file, finished or as a live encoder left it.
///
/// ```text
/// EBML  Segment( SeekHead  Info  Tracks  Cluster …  Cues )
///                                        └ Timestamp, SimpleBlock …, BlockGroup( Block, BlockDuration, ReferenceBlock ) …
/// ```
/// Each cluster is walked from block to block: the file has no other list of its samples. `Cues` lists only some keyframes, and live encoders do not write it.
public struct MatroskaReader: MovieReading, Sendable {
    public private(set) var wanted: FileRange
    public private(set) var isDone = false

    private let fileLength: Int64
    private var position: Int64 = 0
    private var place = Place.start
    private var segmentEnd: Int64
    /// An element that is read as a whole, with the requested range.
    private var whole: Element?
    private var elements = 0
    private var fault: MovieFault?

    private var scale = TickClock.usualScale
    private var entries: [TrackEntry]?
    private var lists: [BlockList] = []
    private var clusterTicks: Int64?

    private enum Place {
        /// Nothing was read yet.
        case start
        /// After the header of the file.
        case file
        case segment
        /// `end` is nil while its size is unknown.
        case cluster(end: Int64?)
        case group(Group, end: Int64, clusterEnd: Int64?)
    }

    /// The values of a `BlockGroup` so far.
    private struct Group {
        var block: Block?
        var duration: UInt64?
        var isSync = true
    }

    /// A block, and the track that it belongs to.
    private struct Block {
        var list: Int
        var content: BlockList.Block
    }

    /// What is read at once: a block's beginning, and the blocks after it if they are small.
    private static let window = 4_096
    /// Bytes of time and flags.
    private static let blockFields = 3
    /// A block's beginning: header, number of the track, time, flags and the first two bytes of its content.
    private static let lookAhead = Element.maximumHeader + 8 + blockFields + 2
    /// Maximum size of a file's header, and of the parts of a segment that are read as a whole.
    private static let maximumHeader = 4_096
    private static let maximumDescription = 1 << 20
    /// Two around each sample: the number is bounded because empty elements cost the file only two bytes each.
    private static let maximumElements = 3 * MovieFile.maximumSamples

    /// A reader of a file of `fileLength` bytes.
    public init(fileLength: Int64) {
        self.fileLength = fileLength
        segmentEnd = fileLength
        wanted = FileRange(offset: 0, length: Self.window)
        if fileLength < 16 { fail(.notMovie) }
    }

    /// The number of bytes at the beginning of a file that show whether it is of this kind.
    public static let signatureLength = 4

    /// Whether a file that begins with `bytes` is of this kind.
    public static func recognizes(_ bytes: RawSpan) -> Bool {
        bytes.byteCount >= signatureLength && bytes.readUInt32(0) == ElementID.header.rawValue
    }

    /// The tracks that have samples; in a truncated file, the samples up to its end.
    public func movie() throws(MovieFault) -> MovieFile {
        if let fault { throw fault }
        guard entries != nil else { throw .notMovie }
        let tracks = lists.filter { $0.count > 0 }.map { $0.track() }
        guard !tracks.isEmpty else { throw .noTracks }
        return MovieFile(tracks: tracks)
    }

    /// Processes the bytes of `wanted`: a part that is read as a whole, or all elements that begin in them.
    public mutating func receive(_ bytes: RawSpan) {
        guard !isDone else { return }
        if let element = whole {
            whole = nil
            receive(element, bytes)
        } else {
            walk(bytes)
        }
        guard !isDone, whole == nil else { return }
        wanted = FileRange(offset: position, length: Self.window)
        if position >= fileLength { isDone = true }
    }

    private mutating func fail(_ fault: MovieFault) {
        self.fault = fault
        isDone = true
    }

    /// An element that does not fit: the end of a file that was truncated or is still being written, if something came before it.
    private mutating func breakOff() {
        guard lists.contains(where: { $0.count > 0 }) else { return fail(.malformed) }
        isDone = true
    }

    // MARK: - Elements

    /// Processes the elements that begin in `bytes`, which start at `position`.
    private mutating func walk(_ bytes: RawSpan) {
        // Bytes were requested, and there are none: the file was shortened, or its disk fails.
        guard bytes.byteCount > 0 else { return breakOff() }
        let start = position
        let isLast = start + Int64(bytes.byteCount) >= fileLength
        while !isDone, whole == nil {
            leave()
            let offset = position - start
            guard !isDone, offset < Int64(bytes.byteCount) else { return }
            guard isLast || Int64(bytes.byteCount) - offset >= Int64(Self.lookAhead) else {
                // Less than was requested: the file was shortened.
                if offset == 0 { breakOff() }
                return
            }
            elements += 1
            guard elements <= Self.maximumElements else { return fail(.tooLarge) }
            let rest = bytes.extracting(Int(offset)..<bytes.byteCount)
            guard let element = Element(at: 0, in: rest) else {
                if case .start = place { return fail(.notMovie) }
                return breakOff()
            }
            step(element, rest)
        }
    }

    /// Leaves the elements that end at `position`.
    private mutating func leave() {
        if case .group(let group, let end, let clusterEnd) = place, position >= end {
            place = .cluster(end: clusterEnd)
            if var block = group.block {
                block.content.duration = group.duration
                block.content.isSync = group.isSync
                add(block)
            }
        }
        if case .cluster(let end?) = place, position >= end { place = .segment }
        if position >= segmentEnd { isDone = true }
    }

    private mutating func step(_ element: Element, _ bytes: RawSpan) {
        switch place {
        case .start:
            guard element.id == .header else { return fail(.notMovie) }
            readWhole(element, limit: Self.maximumHeader, within: fileLength)
        case .file:
            guard element.id == .segment else { return skip(element, within: fileLength) }
            position += Int64(element.headerLength)
            segmentEnd = end(of: element, within: fileLength) ?? fileLength
            place = .segment
        case .segment: stepInSegment(element)
        case .cluster(let clusterEnd): stepInCluster(element, clusterEnd, bytes)
        case .group(let group, let groupEnd, let clusterEnd):
            stepInGroup(element, group, end: groupEnd, clusterEnd, bytes)
        }
    }

    private mutating func stepInSegment(_ element: Element) {
        switch element.id {
        case .info where lists.isEmpty, .tracks where entries == nil:
            readWhole(element, limit: Self.maximumDescription, within: segmentEnd)
        case .cluster:
            guard beginBlocks() else { return }
            position += Int64(element.headerLength)
            clusterTicks = nil
            place = .cluster(end: end(of: element, within: segmentEnd))
        // Another file after this one.
        case .header, .segment: isDone = true
        default: skip(element, within: segmentEnd)
        }
    }

    private mutating func stepInCluster(_ element: Element, _ clusterEnd: Int64?, _ bytes: RawSpan) {
        let limit = clusterEnd ?? segmentEnd
        switch element.id {
        case .timestamp:
            guard let content = element.content(from: 0, end: bytes.byteCount),
                let ticks = bytes.unsignedInteger(content), ticks < 1 << 61
            else { return breakOff() }
            clusterTicks = Int64(ticks)
            skip(element, within: limit)
        case .simpleBlock:
            if let block = block(element, within: limit, bytes) { add(block) }
            skip(element, within: limit)
        case .blockGroup:
            guard let size = element.size, fits(element, within: limit) else { return breakOff() }
            position += Int64(element.headerLength)
            place = .group(Group(), end: position + size, clusterEnd: clusterEnd)
        case _ where element.id.endsCluster && clusterEnd == nil: place = .segment
        default: skip(element, within: limit)
        }
    }

    private mutating func stepInGroup(
        _ element: Element, _ group: Group, end: Int64, _ clusterEnd: Int64?, _ bytes: RawSpan
    ) {
        var group = group
        switch element.id {
        case .block: group.block = block(element, within: end, bytes)
        case .blockDuration:
            guard let content = element.content(from: 0, end: bytes.byteCount),
                let duration = bytes.unsignedInteger(content)
            else { return breakOff() }
            group.duration = duration
        case .referenceBlock: group.isSync = false
        default: break
        }
        place = .group(group, end: end, clusterEnd: clusterEnd)
        skip(element, within: end)
    }

    /// Where its content ends; nil if its size is unknown. An element that extends beyond `limit` was cut off there.
    private func end(of element: Element, within limit: Int64) -> Int64? {
        element.size.map { $0 < limit - position ? position + $0 : limit }
    }

    /// Whether the element at `position` is complete.
    private func fits(_ element: Element, within limit: Int64) -> Bool {
        guard let size = element.size else { return false }
        return size <= limit - position - Int64(element.headerLength)
    }

    private mutating func skip(_ element: Element, within limit: Int64) {
        guard !isDone else { return }
        guard let size = element.size, fits(element, within: limit) else { return breakOff() }
        position += Int64(element.headerLength) + size
    }

    private mutating func readWhole(_ element: Element, limit: Int, within end: Int64) {
        guard let size = element.size, fits(element, within: end) else { return fail(.malformed) }
        guard size <= Int64(limit) else { return fail(.tooLarge) }
        whole = element
        wanted = FileRange(offset: position, length: element.headerLength + Int(size))
    }

    private mutating func receive(_ element: Element, _ bytes: RawSpan) {
        guard let content = element.content(from: 0, end: bytes.byteCount) else { return fail(.malformed) }
        do throws(MovieFault) {
            switch element.id {
            case .header:
                try Self.check(header: bytes, content)
                place = .file
            case .info: scale = try Self.scale(bytes, content)
            default: entries = try TrackEntry.all(in: bytes, content)
            }
        } catch {
            return fail(error)
        }
        position += Int64(content.upperBound)
    }

    private static func check(header bytes: RawSpan, _ content: Range<Int>) throws(MovieFault) {
        var walk = ElementWalk(content)
        while let (id, range) = try walk.next(in: bytes) {
            guard id == .docType else { continue }
            var type: [UInt8] = []
            // It may end with zeros (RFC 8794 section 11.2.4).
            for position in range where bytes.readUInt8(position) != 0 { type.append(bytes.readUInt8(position)) }
            guard type == Array("webm".utf8) || type == Array("matroska".utf8) else { throw .notMovie }
        }
    }

    private static func scale(_ bytes: RawSpan, _ content: Range<Int>) throws(MovieFault) -> UInt64 {
        var walk = ElementWalk(content)
        while let (id, range) = try walk.next(in: bytes) {
            guard id == .timestampScale else { continue }
            guard let scale = bytes.unsignedInteger(range) else { throw .malformed }
            return scale
        }
        return TickClock.usualScale
    }

    // MARK: - Blocks

    /// False, and the end, if nothing describes the blocks that follow.
    private mutating func beginBlocks() -> Bool {
        guard lists.isEmpty else { return true }
        guard let entries else {
            fail(.malformed)
            return false
        }
        lists = entries.compactMap { BlockList($0, scale: scale) }
        guard lists.isEmpty else { return true }
        fail(entries.isEmpty ? .noTracks : .malformed)
        return false
    }

    /// The block that begins with `bytes`; nil if it belongs to no track that counts, if it is empty, and at the end of the readable part.
    ///
    /// ```text
    /// track number (1 to 8 bytes)  time (2 bytes, signed, from the cluster's on)  flags: keyframe, …, lacing (2 bits), …
    /// ```
    private mutating func block(_ element: Element, within limit: Int64, _ bytes: RawSpan) -> Block? {
        guard let size = element.size, fits(element, within: limit),
            let number = VariableSize(at: element.headerLength, in: bytes), let clusterTicks
        else {
            breakOff()
            return nil
        }
        let start = element.headerLength + number.length, length = size - Int64(number.length + Self.blockFields)
        guard length >= 0, start + Self.blockFields <= bytes.byteCount else {
            breakOff()
            return nil
        }
        guard let list = lists.firstIndex(where: { UInt64($0.entry.number) == number.value }), length > 0 else {
            return nil
        }
        let flags = bytes.readUInt8(start + 2)
        guard flags & 0x06 == 0, let known = UInt32(exactly: length) else {
            fail(flags & 0x06 == 0 ? .tooLarge : .lacing)
            return nil
        }
        let first = start + Self.blockFields
        let beginning = bytes.extracting(first..<min(bytes.byteCount, first + Int(min(known, 2))))
        var content = BlockList.Block(
            offset: position + Int64(first), length: known,
            ticks: clusterTicks + Int64(Int16(bitPattern: bytes.readUInt16(start))), duration: nil,
            isSync: flags & 0x80 != 0, first: beginning.byteCount > 0 ? beginning.readUInt8(0) : 0)
        if lists[list].entry.isOpus { content.opusSamples = Opus(beginning)?.sampleCount ?? 0 }
        return Block(list: list, content: content)
    }

    private mutating func add(_ block: Block) {
        guard lists.reduce(0, { $0 + $1.count }) < MovieFile.maximumSamples else { return fail(.tooLarge) }
        if !lists[block.list].append(block.content) { breakOff() }
    }
}
