import Cryptography
import Foundation
import HTTPClient
import Primitives

/// A bucket of an S3-compatible storage.
public struct ObjectStore: Sendable {
    /// Where it is, and who may write there.
    public struct Configuration: Sendable, Hashable {
        /// `http` or `https`, host and port, without a path: `https://s3.eu-central-1.amazonaws.com`.
        public var endpoint: String
        public var bucket: String
        public var region: String
        /// Stands before every key; empty or ending with `/`.
        public var prefix: String
        /// The two lines of the file with credentials.
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

    /// Why a request did not do what it was to. `words` are for logs and operators: no credentials are in them.
    public struct Failure: Error, Sendable, Hashable {
        public var words: String
        /// The storage has forgotten the upload, or never knew it.
        let isUnknownUpload: Bool
        /// The storage has refused what was sent, and may do so because it has forgotten the upload: some answer 500 then, and others a 4xx with a code of their own. No
        /// connection, wrong credentials, and a storage that is busy mean no such thing.
        public let mayBeUnknownUpload: Bool
        /// The storage does not have what the request is about.
        let isNotFound: Bool

        /// A failure that is no answer of the storage's.
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

    /// What is asked of a storage.
    struct Request: Sendable {
        var method: String
        var key: String
        var query: String
        /// Complete lines, but for the signature.
        var headers: [String]
        var body: [UInt8]
    }

    /// What a response said.
    struct Answer: Sendable {
        var status: Int
        var body: [UInt8] = []
        /// Names in lower case.
        var headers: [String: String] = [:]
    }

    private let configuration: Configuration
    /// Who answers in place of the storage, in tests.
    private let stand: (@Sendable (Request) -> Answer)?
    /// A part of 16 MB has to be through by then, over a line of 1 Mbit/s.
    private static let timeout = TimeInterval.seconds(180)

    /// A bucket; nothing is asked of it yet.
    public init(_ configuration: Configuration) { self.init(configuration, stand: nil) }

    init(_ configuration: Configuration, stand: (@Sendable (Request) -> Answer)?) {
        self.configuration = configuration
        self.stand = stand
    }

    /// The key of an object named `name` in this bucket.
    public func key(_ name: String) -> String { configuration.prefix + name }

    /// Makes a request about the object `key`. `query` has its names in the order of the alphabet, each with `=`: libcurl signs it as it stands.
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
        // libcurl would call a body a form.
        if body != nil { call.headers.append("Content-Type: \(Self.mediaType(of: key))") }
        call.body = body
        call.timeout = Self.timeout
        call.signature = HTTPCall.Signature(
            scope: "aws:amz:\(configuration.region):s3", user: configuration.accessKey, secret: configuration.secretKey)
        var fields: [String: String] = [:]
        let outcome = call.perform(
            onHeader: { name, value in
                let name = name.lowercased()
                // It comes once for each checksum.
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

    /// Answers that concern the credentials (403), the connection (408) and the rate (429), not the upload.
    private static let unrelatedRefusals = [403, 408, 429]

    static func failure(_ status: Int, _ body: [UInt8], _ method: String) -> Failure {
        // The storage's own code, such as NoSuchBucket; nothing else of what it says is passed on.
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

    /// The CRC32C in such a field: `crc32c=4waSgw==`, four bytes in network order, among others behind commas.
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

    /// What stands in a path as it is (RFC 3986 section 2.3); S3 wants everything else encoded.
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
