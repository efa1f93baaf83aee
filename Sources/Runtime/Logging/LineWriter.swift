import Glibc
import Synchronization

/// Writes lines to a descriptor that others may read slowly or not at all: a journal whose disk hangs, a pipe into a program that was stopped. What finds no
/// room is lost and counted, because whoever logs holds up joins, calls of the API, and all others who log.
final class LineWriter: Sendable {
    private struct State {
        /// Lines that found no room.
        var lost = 0
        /// The last line has no end, because the rest of it was lost.
        var isBroken = false
    }

    private let descriptor: Int32
    private let state = Mutex(State())
    /// A pipe that can be written to takes so much at once (pipe(7): PIPE_BUF).
    private static let pieceLength = 4_096

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Writes the line that `report` makes of how many were lost, once there is room again. A full disk seems to have room: where that line is lost, too, they
    /// go on counting.
    func reportLost(_ report: (Int) -> String) {
        state.withLock { state in
            guard state.lost > 0, isWritable else { return }
            if write(report(state.lost), &state) { state.lost = 0 }
        }
    }

    /// Writes `line` as far as it finds room.
    func write(_ line: String) {
        state.withLock { state in
            if !write(line, &state) { state.lost += 1 }
        }
    }

    /// Whether all of `line` found room.
    private func write(_ line: String, _ state: inout State) -> Bool {
        var text = state.isBroken ? "\n" + line : line
        return text.withUTF8 { bytes in
            let left = put(bytes)
            if left < bytes.count { state.isBroken = left > 0 }
            return left == 0
        }
    }

    /// How many bytes found no room.
    private func put(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        var rest = UnsafeRawBufferPointer(bytes)
        while let start = rest.baseAddress, rest.count > 0 {
            // A socket, as that of the journal, says at once that it is full; nothing else has a call for it.
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
