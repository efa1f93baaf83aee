import CHTTPClient
import Dispatch
import Glibc
public import Primitives

/// One HTTP request to another server.
public struct HTTPCall: Sendable, Hashable {
    /// More than any response that is requested here.
    public static let maxResponseBytes = 64 << 20
    /// Up to this much of an unwanted body is received, so that its sender does not see the connection end in the middle of a few words.
    private static let maxUnwantedBytes = 64 << 10

    public var method: String
    /// `http` or `https`.
    public var url: String
    /// Complete lines, such as `Content-Type: application/json`.
    public var headers: [String] = []
    /// nil: the request has none.
    public var body: [UInt8]?
    /// How long it may take; nil: as long as bytes pass, in either direction, within `silence`.
    public var timeout: TimeSpan? = .seconds(10)
    /// Three keep-alives of a quiet event stream, which come every 15 s.
    public var silence = TimeSpan.seconds(45)
    /// Certificates to trust, in PEM form; nil: the system's.
    public var certificatesPath: String?
    /// Trusts the certificates of `certificatesPath` whatever names they contain.
    public var isPinned = false
    /// Signs the request with AWS Signature Version 4; nil: unsigned.
    public var signature: Signature?
    /// Opens no socket to an address that is not public; checked after name resolution.
    public var isPublicOnly = false

    /// A request without header fields and body.
    public init(_ method: String, _ url: String) {
        self.method = method
        self.url = url
    }

    /// The credentials and the scope of a signature.
    public struct Signature: Sendable, Hashable {
        let scope: String
        let user: String

        /// `scope` is libcurl's: `aws:amz:REGION:SERVICE`.
        public init(scope: String, user: String, secret: String) {
            self.scope = scope
            self.user = "\(user):\(secret)"
        }
    }

    /// The result of a request.
    public enum Outcome: Sendable, Hashable {
        case answered(status: Int, body: [UInt8])
        /// A description: the name was not found, it took too long, nothing arrived.
        case failed(String)
        /// The machine refused the connection: nothing listens there. With a description.
        case nobodyListens(String)
        /// The address is not public.
        case addressRefused
    }

    /// The state for a callback of the library.
    private final class Response {
        var body: [UInt8] = []
        let take: ((Int, UnsafeBufferPointer<UInt8>) -> Bool)?
        let onHeader: ((String, String) -> Void)?
        let isStopped: (() -> Bool)?

        init(
            take: ((Int, UnsafeBufferPointer<UInt8>) -> Bool)?, onHeader: ((String, String) -> Void)?,
            isStopped: (() -> Bool)?
        ) {
            self.take = take
            self.onHeader = onHeader
            self.isStopped = isStopped
        }
    }

    /// Makes the request on the calling thread, which waits. `take` gets the response's status and its body piece by piece as it arrives, and ends the request
    /// by returning false; without it the outcome has the body. `onHeader` gets the fields of the response's header; `isStopped` is called several times a
    /// second.
    public func perform(
        take: ((_ status: Int, UnsafeBufferPointer<UInt8>) -> Bool)? = nil,
        onHeader: ((_ name: String, _ value: String) -> Void)? = nil, isStopped: (() -> Bool)? = nil
    ) -> Outcome {
        let response = Response(take: take, onHeader: onHeader, isStopped: isStopped)
        var status = 0
        var error = [CChar](repeating: 0, count: 256)
        let lines = headers.map { strdup($0) }
        defer { for line in lines { free(line) } }
        let result = withExtendedLifetime(response) {
            lines.map { UnsafePointer($0) }.withUnsafeBufferPointer { lines in
                withCStrings { method, url, certificates, scope, user in
                    (body ?? []).withUnsafeBufferPointer { bytes in
                        // An empty array may have no address; an empty body must have one.
                        let nothing: [UInt8] = [0]
                        return nothing.withUnsafeBufferPointer { nothing in
                            var request = http_request()
                            request.method = method
                            request.url = url
                            request.body = body == nil ? nil : bytes.baseAddress ?? nothing.baseAddress
                            request.body_size = bytes.count
                            request.headers = lines.baseAddress
                            request.header_count = lines.count
                            request.timeout_ms = Int(timeout?.milliseconds ?? 0)
                            request.silence_ms = Int(silence.milliseconds)
                            request.ca_file = certificates
                            request.is_pinned = isPinned ? 1 : 0
                            request.signature_scope = scope
                            request.signature_user = user
                            Self.listen(&request, toHeader: onHeader != nil, toStop: isStopped != nil)
                            if isPublicOnly {
                                request.may_connect = { address, _ in
                                    address.flatMap { SocketAddress(system: $0) }?.isPublic == true ? 1 : 0
                                }
                            }
                            request.on_bytes = { bytes, count, status, context in
                                guard let bytes, let context else { return 0 }
                                return Self.receive(bytes, count, status, context) ? 1 : 0
                            }
                            request.context = Unmanaged.passUnretained(response).toOpaque()
                            return http_perform(&request, &status, &error, error.count)
                        }
                    }
                }
            }
        }
        switch result {
        case HTTP_ANSWERED: return .answered(status: status, body: response.body)
        case HTTP_STOPPED:
            return take == nil ? .failed("the response is too large") : .answered(status: status, body: [])
        case HTTP_ADDRESS_REFUSED: return .addressRefused
        case HTTP_NOBODY_LISTENS: return .nobodyListens(Self.words(error))
        default: return .failed(Self.words(error))
        }
    }

    private static func words(_ error: [CChar]) -> String {
        String(decoding: error.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The same on a separate thread. Without `keepsBody`, only the status matters: no body is kept, and a long one is not awaited.
    public func performInBackground(keepsBody: Bool = true) async -> Outcome {
        await withCheckedContinuation { continuation in
            Self.queue.async { continuation.resume(returning: keepsBody ? perform() : performWithoutBody()) }
        }
    }

    private func performWithoutBody() -> Outcome {
        var left = Self.maxUnwantedBytes
        return perform(take: { _, bytes in
            left -= bytes.count
            return left >= 0
        })
    }

    private static let queue = DispatchQueue(label: "http-client", qos: .utility, attributes: .concurrent)

    private func withCStrings<Value>(
        _ body: (
            UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafePointer<CChar>?, UnsafePointer<CChar>?,
            UnsafePointer<CChar>?
        ) -> Value
    ) -> Value {
        method.withCString { method in
            url.withCString { url in
                Self.withCString(certificatesPath) { certificates in
                    Self.withCString(signature?.scope) { scope in
                        Self.withCString(signature?.user) { body(method, url, certificates, scope, $0) }
                    }
                }
            }
        }
    }

    /// Registers the callbacks that the request needs with the library.
    private static func listen(_ request: inout http_request, toHeader: Bool, toStop: Bool) {
        if toHeader {
            request.on_header = { bytes, count, context in
                guard let bytes, let context else { return }
                HTTPCall.receiveHeader(bytes, count, context)
            }
        }
        if toStop {
            request.is_stopped = { context in
                context.map { HTTPCall.response($0).isStopped?() == true } == true ? 1 : 0
            }
        }
    }

    private static func withCString<Value>(_ text: String?, _ body: (UnsafePointer<CChar>?) -> Value) -> Value {
        guard let text else { return body(nil) }
        return text.withCString { body($0) }
    }

    private static func response(_ context: UnsafeMutableRawPointer) -> Response {
        Unmanaged<Response>.fromOpaque(context).takeUnretainedValue()
    }

    private static func receiveHeader(
        _ bytes: UnsafePointer<CChar>, _ count: Int, _ context: UnsafeMutableRawPointer
    ) {
        let line = String(
            decoding: UnsafeRawBufferPointer(start: bytes, count: count).drop { $0 == 0x20 }, as: UTF8.self)
        guard let colon = line.firstIndex(of: ":") else { return }
        let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        response(context).onHeader?(String(line[..<colon]), String(value.prefix { !$0.isNewline }))
    }

    private static func receive(
        _ bytes: UnsafePointer<UInt8>, _ count: Int, _ status: Int, _ context: UnsafeMutableRawPointer
    ) -> Bool {
        let response = response(context)
        let piece = UnsafeBufferPointer(start: bytes, count: count)
        if let take = response.take { return take(status, piece) }
        guard response.body.count + count <= maxResponseBytes else { return false }
        response.body += piece
        return true
    }
}
