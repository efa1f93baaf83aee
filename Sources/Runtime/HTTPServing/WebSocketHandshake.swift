import COpenSSL

/// The server's side of the opening handshake (RFC 6455 section 4.2).
struct WebSocketHandshake: Sendable {
    /// The selected subprotocol; nil if the client named none.
    let subprotocol: String?
    private let key: String

    /// Checks an upgrade request; `protocols` are the route's, in order of preference. It is a fault if the client names some, but none of these.
    init(_ headers: HTTPHeaders, protocols: [String]) throws(HTTPRefusal) {
        func refusal(_ detail: String) -> HTTPRefusal {
            HTTPRefusal(status: 400, code: "bad_handshake", detail: detail)
        }
        guard headers.list("Connection", contains: "upgrade") else {
            throw refusal("The header field Connection must contain Upgrade.")
        }
        guard headers["Sec-WebSocket-Version"] == "13" else { throw refusal("Only WebSocket version 13 is supported.") }
        // Sixteen bytes in base64.
        guard let key = headers["Sec-WebSocket-Key"], key.utf8.count == 24, key.hasSuffix("==") else {
            throw refusal("The header field Sec-WebSocket-Key must be 16 bytes in base64.")
        }
        self.key = key
        let offered = headers.values("Sec-WebSocket-Protocol").flatMap { $0.split(separator: ",") }
            .map { trimmed(String($0)) }
        subprotocol = protocols.first { offered.contains($0) }
        if subprotocol == nil, !offered.isEmpty, !protocols.isEmpty {
            throw refusal(
                "None of the offered subprotocols is supported; this path supports \(protocols.joined(separator: ", "))."
            )
        }
    }

    /// The response that upgrades the connection.
    var response: [UInt8] {
        var text = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        text += "Sec-WebSocket-Accept: \(accept)\r\n"
        if let subprotocol { text += "Sec-WebSocket-Protocol: \(subprotocol)\r\n" }
        return Array((text + "\r\n").utf8)
    }

    /// Section 4.2.2: proves that the request was understood.
    private var accept: String {
        let text = Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
        var digest = [UInt8](repeating: 0, count: 20)
        EVP_Digest(text, text.count, &digest, nil, EVP_sha1(), nil)
        var encoded = [UInt8](repeating: 0, count: 29)
        let count = EVP_EncodeBlock(&encoded, digest, Int32(digest.count))
        return String(decoding: encoded.prefix(Int(count)), as: UTF8.self)
    }
}
