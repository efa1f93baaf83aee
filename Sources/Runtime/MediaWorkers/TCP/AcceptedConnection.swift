import Primitives

/// A connection on its way from the acceptor of a shared port to its worker. Its current holder owns the descriptor.
struct AcceptedConnection: Sendable {
    var descriptor: Int32
    var address: SocketAddress
    /// What the acceptor has read.
    var bytes: [UInt8]
}
