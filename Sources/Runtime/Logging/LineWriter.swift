import Glibc
import Synchronization

/// Writes lines to a descriptor that others may read slowly or not at all: a journal whose disk hangs, a pipe into a program that was stopped. What finds no
/// room is lost and counted, because whoever logs holds up joins, calls of the API, and all others who log.
enum LineWriter {
    /// Lines that found no room.
    private static let lost = Atomic<Int>(0)
    /// The last line has no end, because the rest of it was lost.
    private static let isBroken = Atomic<Bool>(false)
    /// A pipe that can be written to takes so much at once (pipe(7): PIPE_BUF).
    private static let pieceLength = 4_096

    /// Lines that were lost, once `descriptor` can be written to again; nil: none.
    static func takeLost(on descriptor: Int32 = 2) -> Int? {
        guard lost.load(ordering: .relaxed) > 0, isWritable(descriptor) else { return nil }
        return lost.exchange(0, ordering: .relaxed)
    }

    /// Writes `text` as far as it finds room.
    static func write(_ line: String, to descriptor: Int32) {
        var text = isBroken.exchange(false, ordering: .relaxed) ? "\n" + line : line
        let isWhole = text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            defer { if rest.count > 0, rest.count < bytes.count { isBroken.store(true, ordering: .relaxed) } }
            while let start = rest.baseAddress, rest.count > 0 {
                // A socket, as that of the journal, says at once that it is full; nothing else has a call for it.
                var written = send(descriptor, start, rest.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
                if written < 0, errno == ENOTSOCK {
                    guard isWritable(descriptor) else { return false }
                    written = Glibc.write(descriptor, start, min(rest.count, pieceLength))
                }
                if written < 0, errno == EINTR { continue }
                guard written > 0 else { return false }
                rest = UnsafeRawBufferPointer(rebasing: rest[written...])
            }
            return true
        }
        if !isWhole { lost.add(1, ordering: .relaxed) }
    }

    private static func isWritable(_ descriptor: Int32) -> Bool {
        var asked = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return poll(&asked, 1, 0) > 0 && asked.revents & Int16(POLLOUT) != 0
    }
}
