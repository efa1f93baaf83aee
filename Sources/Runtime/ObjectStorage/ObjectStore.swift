import Cryptography
import Foundation
import HTTPClient
import Primitives

/// A bucket of an S3-compatible storage.
public struct ObjectStore: Sendable {
    /// Its location and credentials.
    public struct Configuration: Sendable, Hashable {
        /// `http` or `https`, host and port, without a path: `https://s3.eu-central-1.amazonaws.com`.
        public var endpoint: String
        public var bucket: String
        public var region: String
        /// A prefix of every key; empty, or ends with `/`.
        public var prefix: String
        /// The two lines of the credentials file.
        public var accessKey: String
        public var secretKey: String

        /// A bucket.
        public init(
            endpoint: String, bucket: String, region: String, prefix: String, accessKey: String, secretKey: String
        ) {
            self.endpoint = endpoint
            self.bucket = bucket
            self.region = region
            self.prefix = prefix
            self.accessKey = accessKey
            self.secretKey = secretKey
        }
    }

    /// Why a request failed. `words` are for logs and operators: they contain no credentials.
    public struct Failure: Error, Sendable, Hashable {
        public var words: String
        /// The storage has forgotten the upload, or never knew it.
        let isUnknownUpload: Bool
        /// The storage has refused the request, perhaps because it has forgotten the upload: some storages then answer 500, and others a 4xx with their own
        /// code. A failed connection, wrong credentials, and a busy storage do not mean this.
        public let mayBeUnknownUpload: Bool
        /// The storage does not have the requested object.
        let isNotFound: Bool

        /// A failure that is not a response of the storage.
        public init(words: String) {
            self.init(words: words, isUnknownUpload: false, mayBeUnknownUpload: false, isNotFound: false)
        }

        init(words: String, isUnknownUpload: Bool, mayBeUnknownUpload: Bool, isNotFound: Bool) {
            self.words = words
            self.isUnknownUpload = isUnknownUpload
            self.mayBeUnknownUpload = mayBeUnknownUpload
            self.isNotFound = isNotFound
        }
    }

    /// A request to a storage.
    struct Request: Sendable {
        var method: String
        var key: String
        var query: String
        /// Complete lines, without the signature.
        var headers: [String]
        var body: [UInt8]
    }

    /// The response.
    struct Answer: Sendable {
        var status: Int
        var body: [UInt8] = []
        /// Names in lower case.
        var headers: [String: String] = [:]
    }

    private let configuration: Configuration
    /// A replacement for the storage in tests.
    private let stand: (@Sendable (Request) -> Answer)?
    /// A part of 16 MB must be sent within this time, over a line of 1 Mbit/s.
    private static let timeout = TimeSpan.seconds(180)

    /// A bucket; makes no request yet.
    public init(_ configuration: Configuration) { self.init(configuration, stand: nil) }

    init(_ configuration: Configuration, stand: (@Sendable (Request) -> Answer)?) {
        self.configuration = configuration
        self.stand = stand
    }

    /// The key of an object named `name` in this bucket.
    public func key(_ name: String) -> String { configuration.prefix + name }

    /// Makes a request for the object `key`. `query` has its names in alphabetical order, each with `=`: libcurl signs it as it is.
    func request(
        _ method: String, _ key: String, query: String = "", headers: [String] = [], body: [UInt8]? = nil,
        isStopped: @escaping () -> Bool
    ) throws(Failure) -> Answer {
        if let stand {
            let answer = stand(Request(method: method, key: key, query: query, headers: headers, body: body ?? []))
            guard (200..<300).contains(answer.status) else { throw Self.failure(answer.status, answer.body, method) }
            return answer
        }
        let path = "/" + Self.encoded(configuration.bucket) + "/" + Self.encoded(key)
        var call = HTTPCall(method, configuration.endpoint + path + (query.isEmpty ? "" : "?" + query))
        call.headers = ["x-amz-content-sha256: \(Digest.sha256(body ?? []).hexadecimal)"] + headers
        // libcurl would label a body as a form.
        if body != nil { call.headers.append("Content-Type: \(Self.mediaType(of: key))") }
        call.body = body
        call.timeout = Self.timeout
        call.signature = HTTPCall.Signature(
            scope: "aws:amz:\(configuration.region):s3", user: configuration.accessKey, secret: configuration.secretKey)
        var fields: [String: String] = [:]
        let outcome = call.perform(
            onHeader: { name, value in
                let name = name.lowercased()
                // The field appears once for each checksum.
                let former = name == Self.hashField ? fields[name] : nil
                fields[name] = former.map { "\($0), \(value)" } ?? value
            }, isStopped: isStopped)
        switch outcome {
        case .answered(let status, let body):
            guard (200..<300).contains(status) else { throw Self.failure(status, body, method) }
            return Answer(status: status, body: body, headers: fields)
        case .failed(let words), .nobodyListens(let words): throw Failure(words: words)
        case .addressRefused: throw Failure(words: "the address is refused")
        }
    }

    /// Responses about the credentials (403), the connection (408) and the rate (429), not about the upload.
    private static let unrelatedRefusals = [403, 408, 429]

    static func failure(_ status: Int, _ body: [UInt8], _ method: String) -> Failure {
        // The storage's own code, such as NoSuchBucket; nothing else of its response is passed on.
        let code = element("Code", in: body).flatMap { code in
            code.utf8.count <= 64 && code.utf8.allSatisfy { isPlain($0) } ? code : nil
        }
        return Failure(
            words: "the storage answered \(method) with \(status)\(code.map { " (\($0))" } ?? "")",
            isUnknownUpload: status == 404 && (code == nil || code == "NoSuchUpload"),
            mayBeUnknownUpload: status == 500
                || (400..<500).contains(status) && !unrelatedRefusals.contains(status),
            isNotFound: status == 404)
    }

    /// The text of the first XML element `name`.
    static func element(_ name: String, in body: [UInt8]) -> String? {
        let open = Array("<\(name)>".utf8), close = Array("</\(name)>".utf8)
        guard body.count <= 1 << 20, let start = body.firstRange(of: open)?.upperBound,
            let end = body[start...].firstRange(of: close)?.lowerBound
        else { return nil }
        return String(decoding: body[start..<end], as: UTF8.self)
    }

    /// Google's field of an object's checksums.
    static let hashField = "x-goog-hash"

    /// The CRC32C in such a field: `crc32c=4waSgw==`, four bytes in network order, separated from others by commas.
    static func crc32c(in field: String?) -> UInt32? {
        for part in (field ?? "").split(separator: ",") {
            let text = part.drop { $0 == " " }
            guard text.hasPrefix("crc32c="), let bytes = Data(base64Encoded: String(text.dropFirst(7))),
                bytes.count == 4
            else { continue }
            return bytes.reduce(0) { $0 << 8 | UInt32($1) }
        }
        return nil
    }

    private static func mediaType(of key: String) -> String {
        if key.hasSuffix(".mp4") { return "video/mp4" }
        if key.hasSuffix(".webm") { return "video/webm" }
        return key.hasSuffix(".json") ? "application/json" : "application/octet-stream"
    }

    // MARK: - Text

    /// Characters that may stay in a path as they are (RFC 3986 section 2.3); S3 requires everything else to be encoded.
    private static let inPath = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")

    private static func encoded(_ text: String) -> String {
        // Fails only for invalid Unicode, which a Swift string cannot contain.
        text.addingPercentEncoding(withAllowedCharacters: inPath) ?? ""
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
    }

    static func base64(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }
}
