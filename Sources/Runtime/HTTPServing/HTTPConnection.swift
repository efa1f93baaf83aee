import NetworkIO
import Primitives

/// One accepted connection: its bytes, its phase, and when it times out. Belongs to the loop's thread; `HTTPListener` decides.
final class HTTPConnection {
    /// Its phase.
    enum Phase {
        /// Waits for the first or the next request, of which nothing has arrived.
        case waiting
        /// Part of a head has arrived.
        case head
        /// The head was admitted, part of the body has arrived.
        case body
        /// The request waits for a slot.
        case queued(HTTPWork)
        /// A handler or a route works on the request; the number of its work.
        case handling(UInt64, Task<Void, Never>)
        /// The response is being written.
        case answering(closes: Bool)
        /// A streamed response is being sent.
        case streaming(OpenStream)
        /// The last response was sent, and the client gets time to read it: closing with unread bytes would discard it.
        case lingering
        /// Another protocol.
        case webSocket(WebSocketSession)
        case ended
    }

    /// Bytes per read, and reads before other connections get their turn.
    static let readBytes = 16 << 10
    static let readsPerTurn = 8

    let id: UInt64
    let address: SocketAddress
    let stream: ByteStream
    var reader: HTTPRequestReader
    var phase = Phase.waiting
    /// When it times out in this phase.
    var timeout = Timeout()
    /// The request in progress, and its client's address as the proxy forwards it.
    var request: HTTPRequest?
    var client: UInt64
    var isPersistent = false
    /// Whether the client of the request is authenticated.
    var isKnown = false
    /// When the body or the response began.
    var since = MonotonicTime.zero
    /// Requests that were answered or are in progress.
    var requests = 0
    /// Whether bytes arrived that cannot be used yet; the socket is not watched for more until they can.
    var hasUnwantedInput = false
    /// Bytes that were discarded since the last response.
    var discarded = 0

    init(id: UInt64, address: SocketAddress, stream: ByteStream, limits: HTTPRequestReader.Limits) {
        self.id = id
        self.address = address
        self.stream = stream
        client = Self.key(of: address)
        reader = HTTPRequestReader(limits: limits)
    }

    /// One number for all addresses of one client: an IPv6 network of 64 bits belongs to one household.
    static func key(of address: SocketAddress) -> UInt64 { address.isIPv4 ? address.low : address.high }

    /// Whether bytes of the client can be processed now.
    var wantsInput: Bool {
        switch phase {
        case .waiting, .head, .body, .lingering, .webSocket: true
        case .queued, .handling, .answering, .streaming, .ended: false
        }
    }

    /// Whether a request is between its head and the end of its response.
    var isInWork: Bool {
        switch phase {
        case .body, .queued, .handling, .answering, .streaming: true
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
