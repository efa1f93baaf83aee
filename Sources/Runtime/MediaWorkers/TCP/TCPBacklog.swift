import NetworkIO
import Primitives

/// The packets that one connection's reader has not received: whole packets with their framing, after the rest of one that the kernel accepted in part.
///
/// Holds memory only while it is not empty.
struct TCPBacklog: ~Copyable {
    /// A keyframe of a video of 4 Mbit/s, and as much again.
    static let capacity = 256 << 10

    private var memory: UnsafeMutableRawBufferPointer?
    private var head = 0
    private var tail = 0
    /// Since when something has been waiting.
    private(set) var since = MonotonicTime.zero

    init() {}

    deinit { memory?.deallocate() }

    var count: Int { tail - head }
    var isEmpty: Bool { memory == nil }

    /// Adds bytes at the end; if they do not fit, returns false and adds nothing.
    mutating func append(_ bytes: UnsafeRawBufferPointer, at now: MonotonicTime) -> Bool {
        guard bytes.count <= Self.capacity - count else { return false }
        let memory = memory ?? begin(at: now)
        if bytes.count > Self.capacity - tail {
            memory.baseAddress?.copyMemory(from: memory.baseAddress! + head, byteCount: count)
            (head, tail) = (0, count)
        }
        UnsafeMutableRawBufferPointer(rebasing: memory[tail..<(tail + bytes.count)]).copyMemory(from: bytes)
        tail += bytes.count
        return true
    }

    private mutating func begin(at now: MonotonicTime) -> UnsafeMutableRawBufferPointer {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.capacity, alignment: 64)
        self.memory = memory
        since = now
        return memory
    }

    /// Writes as much as the kernel accepts; false if the connection has ended.
    mutating func drain(into socket: TCPSocket) -> Bool {
        guard let memory else { return true }
        while head < tail {
            switch socket.write(UnsafeRawBufferPointer(rebasing: memory[head..<tail])) {
            case .bytes(let written): head += written
            case .blocked: return true
            case .ended: return false
            }
        }
        memory.deallocate()
        self.memory = nil
        (head, tail) = (0, 0)
        return true
    }
}
