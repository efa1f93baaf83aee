import NetworkIO
import Primitives

/// One accepted connection: its bytes, where it stands, and when it is given up. Belongs to the loop's thread; `HTTPListener` decides.
final class HTTPConnection {
    /// Where it stands.
    enum Phase {
        /// For the first or the next request, of which nothing has come.
        case waiting
        /// Part of a head has come.
        case head
        /// The head was admitted, part of the body has come.
        case body
        /// The request waits for its turn.
        case queued(HTTPWork)
        /// A handler or a route works on the request; the number of its work.
        case handling(UInt64, Task<Void, Never>)
        /// The response is being written.
        case answering(closes: Bool)
        /// The last response has left, and the client is given time to read it: to close with bytes unread would take it away.
        case lingering
        /// Another protocol.
        case webSocket(WebSocketSession)
        case ended
    }

    /// Bytes read in one go, and how often before others get their turn.
    static let readBytes = 16 << 10
    static let readsPerTurn = 8

    let id: UInt64
    let address: SocketAddress
    let stream: ByteStream
    var reader: HTTPRequestReader
    var phase = Phase.waiting
    /// When it is given up in this phase.
    var timeout = Timeout()
    /// The request that is in work, and whose it is: the client as the proxy names it.
    var request: HTTPRequest?
    var client: UInt64
    var isPersistent = false
    /// Whether the client of the request has shown who it is.
    var isKnown = false
    /// When the body or the response began.
    var since = MonotonicTime.zero
    /// Requests that have been answered or are in work.
    var requests = 0
    /// Whether bytes came that are of no use yet; the socket is not watched for more until they are.
    var hasUnwantedInput = false
    /// Bytes that were thrown away since the last response.
    var discarded = 0

    init(id: UInt64, address: SocketAddress, stream: ByteStream, limits: HTTPRequestReader.Limits) {
        self.id = id
        self.address = address
        self.stream = stream
        client = Self.key(of: address)
        reader = HTTPRequestReader(limits: limits)
    }

    /// One number for all addresses that one client has: an IPv6 network of 64 bits is a household's.
    static func key(of address: SocketAddress) -> UInt64 { address.isIPv4 ? address.low : address.high }

    /// Whether bytes of the client are of use now.
    var wantsInput: Bool {
        switch phase {
        case .waiting, .head, .body, .lingering, .webSocket: true
        case .queued, .handling, .answering, .ended: false
        }
    }

    /// Whether a request is between its head and the end of its response.
    var isInWork: Bool {
        switch phase {
        case .body, .queued, .handling, .answering: true
        case .waiting, .head, .lingering, .webSocket, .ended: false
        }
    }

    /// Reads once.
    func fill() -> TCPSocket.Outcome {
        withUnsafeTemporaryAllocation(byteCount: Self.readBytes, alignment: 16) { bytes in
            let outcome = stream.read(into: bytes)
            if case .bytes(let count) = outcome {
                reader.append(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
            }
            return outcome
        }
    }
}
