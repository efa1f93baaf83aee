import Glibc
import Synchronization

/// Writes lines to a descriptor that may be read slowly or not at all: a journal whose disk hangs, a pipe into a program that was stopped. Lines that do not
/// fit are lost and counted, because waiting would delay joins, calls of the API, and everything else that logs.
final class LineWriter: Sendable {
    private struct State {
        /// Lines that did not fit.
        var lost = 0
        /// The last line has no end, because the rest of it was lost.
        var isBroken = false
    }

    private let descriptor: Int32
    private let state = Mutex(State())
    /// A writable pipe accepts this much at once (pipe(7): PIPE_BUF).
    private static let pieceLength = 4_096

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Writes the line that `report` makes of the number of lost lines, once there is room again. A full disk seems to have room: if that line is lost, too,
    /// counting continues.
    func reportLost(_ report: (Int) -> String) {
        state.withLock { state in
            guard state.lost > 0, isWritable else { return }
            if write(report(state.lost), &state) { state.lost = 0 }
        }
    }

    /// Writes as much of `line` as fits.
    func write(_ line: String) {
        state.withLock { state in
            if !write(line, &state) { state.lost += 1 }
        }
    }

    /// Whether all of `line` fit.
    private func write(_ line: String, _ state: inout State) -> Bool {
        var text = state.isBroken ? "\n" + line : line
        return text.withUTF8 { bytes in
            let left = put(bytes)
            if left < bytes.count { state.isBroken = left > 0 }
            return left == 0
        }
    }

    /// How many bytes did not fit.
    private func put(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        var rest = UnsafeRawBufferPointer(bytes)
        while let start = rest.baseAddress, rest.count > 0 {
            // A socket, such as that of the journal, reports at once that it is full; other descriptors have no such call.
            var written = send(descriptor, start, rest.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
            if written < 0, errno == ENOTSOCK {
                guard isWritable else { break }
                written = Glibc.write(descriptor, start, min(rest.count, Self.pieceLength))
            }
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { break }
            rest = UnsafeRawBufferPointer(rebasing: rest[written...])
        }
        return rest.count
    }

    private var isWritable: Bool {
        var asked = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return poll(&asked, 1, 0) > 0 && asked.revents & Int16(POLLOUT) != 0
    }
}
