import Glibc
import MP4
import Movies
import NetworkIO
import Playback
import Primitives
import WebM

/// A file that is read while it is played. Its reads block: only the player's threads use it.
final class PlayedFile: Sendable {
    private let descriptor: Int32
    /// Its length in bytes when it was opened.
    let length: Int64

    /// Takes over an open descriptor; nil if it is not a regular file.
    init?(descriptor: Int32) {
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            if descriptor >= 0 { Glibc.close(descriptor) }
            return nil
        }
        self.descriptor = descriptor
        length = Int64(status.st_size)
        // It is read from front to back.
        _ = posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL)
    }

    deinit { Glibc.close(descriptor) }

    /// A file by its full path, which the server made itself.
    convenience init?(path: String) {
        self.init(descriptor: open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK))
    }

    /// Reads `length` bytes at `offset` into `bytes`, which is resized; false if the file has fewer, or reading fails.
    func read(_ length: Int, at offset: Int64, into bytes: inout [UInt8]) -> Bool {
        if bytes.count < length { bytes = [UInt8](repeating: 0, count: length) }
        var done = 0
        while done < length {
            let count = bytes.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress! + done, length - done, off_t(offset) + done)
            }
            if count > 0 {
                done += count
            } else if count == 0 || errno != EINTR {
                return false
            }
        }
        return true
    }

    /// Its tracks and samples, from the reader for its type, which its first bytes show.
    func movie() throws(PlaybackRefusal) -> MovieFile {
        var bytes: [UInt8] = []
        // A file with fewer bytes has no type, and the reader of MP4 reports this.
        let isRead = read(MatroskaReader.signatureLength, at: 0, into: &bytes)
        let isMatroska = MatroskaReader.recognizes(bytes.span.bytes)
        do throws(MovieFault) {
            return try isRead && isMatroska ? index(MatroskaReader.self) : index(MovieFileReader.self)
        } catch {
            throw .movie(error)
        }
    }

    private func index<Reader: MovieReading>(_: Reader.Type) throws(MovieFault) -> MovieFile {
        var reader = Reader(fileLength: length)
        var bytes: [UInt8] = []
        while !reader.isDone {
            let wanted = reader.wanted
            let count = Int(min(Int64(wanted.length), max(0, length - wanted.offset)))
            // The file may have become shorter.
            guard read(count, at: wanted.offset, into: &bytes) else { throw .malformed }
            reader.receive(bytes.span.bytes.extracting(0..<count))
        }
        return try reader.movie()
    }
}
