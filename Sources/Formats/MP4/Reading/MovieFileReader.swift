public import Movies
import Primitives

/// Finds the tracks and samples of an MP4 file, ordinary or fragmented, with its `moov` at either end.
///
/// ```text
/// ftyp  moov  mdat            ordinary, made for streaming
/// ftyp  mdat  moov            ordinary, as it was written
/// ftyp  moov  moof mdat …     fragmented; what a crash tore off at the end is left out
/// ```
public struct MovieFileReader: MovieReading, Sendable {
    /// What to read next; fewer bytes only at the file's end.
    public private(set) var wanted: FileRange
    /// Nothing more is requested.
    public private(set) var isDone = false

    private enum Step {
        case header
        /// The whole of a box that has this type and size.
        case box(BoxType, Int)
    }

    private let fileLength: Int64
    private var step = Step.header
    private var position: Int64 = 0
    private var header: MovieHeader?
    private var file = MovieFile()
    private var nextTimes: [UInt32: Int64] = [:]
    private var fault: MovieFault?
    private var boxes = 0

    /// Two million samples with sizes, times and offsets of their own.
    static let maximumMovie = 48 << 20
    /// A fragment of many minutes.
    private static let maximumFragment = 4 << 20
    /// Maximum boxes at the top level of a file: two for each of 100,000 fragments, a day of them.
    private static let maximumBoxes = 200_000
    private static let headerLength = 16

    /// A reader of a file of `fileLength` bytes.
    public init(fileLength: Int64) {
        self.fileLength = fileLength
        wanted = FileRange(offset: 0, length: Self.headerLength)
        if fileLength < 16 { fail(.notMovie) }
    }

    /// The movie, once `isDone`. Throws the reason if there is none.
    public func movie() throws(MovieFault) -> MovieFile {
        if let fault { throw fault }
        guard header != nil else { throw .notMovie }
        var found = file
        found.tracks.removeAll { $0.samples.isEmpty }
        guard !found.tracks.isEmpty else { throw .noTracks }
        return found
    }

    /// Takes the bytes of `wanted`.
    public mutating func receive(_ bytes: RawSpan) {
        guard !isDone else { return }
        switch step {
        case .header: receiveHeader(bytes)
        case .box(let type, let size): receiveBox(type, size, bytes)
        }
    }

    private mutating func fail(_ fault: MovieFault) {
        self.fault = fault
        isDone = true
    }

    private mutating func receiveHeader(_ bytes: RawSpan) {
        guard bytes.byteCount >= 8 else {
            isDone = true
            return
        }
        boxes += 1
        guard boxes <= Self.maximumBoxes else { return fail(.tooLarge) }
        var size = Int64(bytes.readUInt32(0))
        let type = BoxType(rawValue: bytes.readUInt32(4))
        if position == 0, type != "ftyp", type != "moov", type != "styp" { return fail(.notMovie) }
        if size == 1 {
            guard bytes.byteCount >= 16 else { return fail(.malformed) }
            size = Int64(clamping: bytes.readUInt64(8))
        } else if size == 0 {
            // Up to the end of the file. Zeros are also what a torn write leaves.
            size = fileLength - position
            if type.rawValue == 0 {
                isDone = true
                return
            }
        }
        guard size >= 8, size <= fileLength - position else {
            // A file that is still being written, or was cut off, ends here.
            if header == nil { return fail(.malformed) }
            isDone = true
            return
        }
        switch type {
        case "moov" where header == nil: read(type, size, limit: Self.maximumMovie)
        case "moof" where header != nil: read(type, size, limit: Self.maximumFragment)
        default: advance(by: size)
        }
    }

    private mutating func read(_ type: BoxType, _ size: Int64, limit: Int) {
        guard size <= Int64(limit) else { return fail(.tooLarge) }
        step = .box(type, Int(size))
        wanted = FileRange(offset: position, length: Int(size))
    }

    private mutating func advance(by size: Int64) {
        position += size
        step = .header
        wanted = FileRange(offset: position, length: Self.headerLength)
        if position > fileLength - 8 { isDone = true }
    }

    private mutating func receiveBox(_ type: BoxType, _ size: Int, _ bytes: RawSpan) {
        guard bytes.byteCount >= size, bytes.readUInt32(0) == UInt32(size) else { return fail(.malformed) }
        do throws(MovieFault) {
            if type == "moov" {
                let header = try MovieHeader(bytes.extracting(0..<size), fileLength: fileLength)
                self.header = header
                file = header.file
            } else {
                var fragment = MovieFragment(length: size, at: position, fileLength: fileLength)
                // A fragment counts only as a whole: one whose data is cut off is left out.
                var longer = file
                file = MovieFile()
                defer { file = longer }
                let counts = longer.tracks.map(\.samples.count)
                do throws(MovieFault) {
                    try fragment.append(
                        bytes.extracting(0..<size), to: &longer, defaults: header?.defaults ?? [:], next: &nextTimes)
                } catch {
                    for index in counts.indices {
                        longer.tracks[index].samples.removeLast(longer.tracks[index].samples.count - counts[index])
                    }
                    guard error == .malformed, counts.contains(where: { $0 > 0 }) else { throw error }
                    isDone = true
                    return
                }
            }
        } catch {
            return fail(error)
        }
        advance(by: Int64(size))
    }
}
