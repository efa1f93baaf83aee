import Foundation

/// What a real client sent to an ICE-lite server before any media: Tests/Vectors/wire.
public struct WireCapture: Decodable, Sendable {
    /// The client's name and version.
    public let client: String
    /// The server's credentials in that session.
    public let serverUfrag: String
    public let serverPwd: String
    /// STUN messages in hexadecimal, in order.
    public let stunRequests: [String]
    /// The datagrams that carry the ClientHello.
    public let clientHelloDatagrams: [String]

    /// All captures.
    public static let all = ["chromium156", "chromium156_nopqc", "firefox153", "gstreamer122"]

    /// A capture by name.
    public static func load(_ name: String) throws -> WireCapture {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(WireCapture.self, from: Data(Vectors.text("wire/\(name).json").utf8))
    }

    /// The STUN messages as bytes.
    public var stunMessages: [[UInt8]] { stunRequests.map { bytes(hex: $0) } }
    /// The ClientHello's datagrams as bytes.
    public var clientHello: [[UInt8]] { clientHelloDatagrams.map { bytes(hex: $0) } }
}
