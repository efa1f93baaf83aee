import Primitives

/// Handshake datagrams that wait until the media of their turn has been sent.
///
/// A server hello costs a third of a millisecond of elliptic curve cryptography, as much as a hundred packets. When many join at once, established
/// calls must not wait for them: a turn processes a few handshakes and leaves the rest to the following turns, in order. Datagrams that do not fit are not
/// dropped but processed at once.
struct HandshakeQueue: ~Copyable {
    /// Handshake datagrams per turn: a third of a millisecond of work, which is how late forwarding may be.
    static let perTurn = 1
    /// 500 joins in one second send 1,000 datagrams; a quarter of them at the same time.
    private static let capacity = 256
    /// Clients limit datagrams to their path's MTU; a larger one is not queued.
    private static let slotLength = 1_500

    private struct Waiting {
        var length: Int
        var source: SocketAddress
    }

    private let bytes = UnsafeMutableRawPointer.allocate(
        byteCount: HandshakeQueue.capacity * HandshakeQueue.slotLength, alignment: 64)
    private let waiting = UnsafeMutablePointer<Waiting>.allocate(capacity: HandshakeQueue.capacity)
    private var head = 0
    private(set) var count = 0

    deinit {
        bytes.deallocate()
        waiting.deallocate()
    }

    /// Whether a datagram is DTLS.
    @inline(__always) static func isHandshake(_ datagram: UnsafeMutableRawBufferPointer) -> Bool {
        guard let first = datagram.first else { return false }
        return DatagramKind(firstByte: first) == .dtls
    }

    /// Data channels, used after the handshake: symmetric cryptography, as cheap as that of media.
    @inline(__always) static func isApplicationData(_ datagram: UnsafeMutableRawBufferPointer) -> Bool {
        datagram.first == 23
    }

    /// Whether a datagram from `source` waits, which must not be overtaken.
    func holds(_ source: SocketAddress) -> Bool {
        (0..<count).contains { waiting[(head + $0) % Self.capacity].source == source }
    }

    /// Stores a copy of `datagram`; false if there is no room.
    mutating func push(_ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress) -> Bool {
        guard count < Self.capacity, datagram.count <= Self.slotLength else { return false }
        let place = (head + count) % Self.capacity
        slot(place, datagram.count).copyMemory(from: UnsafeRawBufferPointer(datagram))
        (waiting + place).initialize(to: Waiting(length: datagram.count, source: source))
        count += 1
        return true
    }

    /// The oldest datagram, valid until the next `push`; nil if none waits.
    mutating func next() -> (datagram: UnsafeMutableRawBufferPointer, source: SocketAddress)? {
        guard count > 0 else { return nil }
        let oldest = waiting[head]
        let datagram = slot(head, oldest.length)
        head = (head + 1) % Self.capacity
        count -= 1
        return (datagram, oldest.source)
    }

    private func slot(_ index: Int, _ length: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: bytes + index * Self.slotLength, count: length)
    }
}
