public import Primitives

/// A wire without delay between one engine and its clients: for drivers that need no links (``World`` has those).
///
/// It carries what the engine has written to the clients. What they send it returns, because each driver has a rule of its own for when the engine gets that:
/// in the same turn, in the next, or while a clock runs.
public final class ClientWire {
    private let server: SocketAddress
    private var replies: OutboundBatch
    /// The buffer in which a client decrypts a datagram. 4,096: more than any datagram of the engine.
    private let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 64)

    /// A wire to the server at `server`. `datagrams` is the most that one client sends at once; none has more than 1,600 bytes.
    public init(to server: SocketAddress, datagrams: Int = 256) {
        self.server = server
        replies = OutboundBatch(datagrams: datagrams, bytes: datagrams * 1_600)
    }

    deinit { slot.deallocate() }

    /// What a client sends in `body`.
    public func datagrams(_ body: (inout OutboundBatch) -> Void) -> [[UInt8]] {
        body(&replies)
        defer { replies.removeAll() }
        return replies.entries.map { Array(replies.bytes(of: $0)) }
    }

    /// Carries every datagram of `batch` to the client that `find` has for its address, and returns what the clients answer, in order.
    ///
    /// `note` sees each datagram as its client left it: decrypted where it was media.
    public func carry<Client>(
        _ batch: borrowing OutboundBatch, at now: MonotonicTime,
        to find: (SocketAddress) -> (client: Client, transport: ClientTransport)?,
        note: (Client, UnsafeMutableRawBufferPointer, ClientReceived) -> Void = { _, _, _ in }
    ) -> [(client: Client, bytes: [UInt8])] {
        var answers: [(client: Client, bytes: [UInt8])] = []
        for entry in batch.entries {
            guard let (client, transport) = find(entry.destination) else { continue }
            slot.copyMemory(from: UnsafeRawBufferPointer(batch.bytes(of: entry)))
            let datagram = UnsafeMutableRawBufferPointer(rebasing: slot[..<entry.length])
            var received = ClientReceived.nothing
            for bytes in datagrams({ received = transport.receive(datagram, from: server, at: now, into: &$0) }) {
                answers.append((client, bytes))
            }
            note(client, datagram, received)
        }
        return answers
    }
}
