import AccessTokens
import Cryptography
import Foundation
import Primitives

@testable import ControlAPI
@testable import EdgeSupport
@testable import HTTPServing
@testable import Signalling
@testable import WHIP

/// One text frame of a signalling client.
func fuzzSignalling(_ input: UnsafeRawBufferPointer) {
    let frame = ClientFrame(text: String(decoding: input, as: UTF8.self))
    if let id = frame.id { precondition(id > 0 && id < 1 << 53, "ids are numbers that JavaScript has") }
    guard case .success(let request) = frame.request, case .perform(let requests) = request else { return }
    precondition(requests.count <= 64, "announcements are bounded")
}

/// A JSON body of the control API.
func fuzzBodies(_ input: UnsafeRawBufferPointer) {
    guard let creation = try? JSONCoding.decode(RoomCreation.self, from: Array(input)) else { return }
    guard let policy = creation.policy else { return }
    let text = JSONCoding.encode(policy)
    precondition(
        (try? JSONCoding.decode(PolicyModel.self, from: text)) == policy, "a policy written is the same policy")
}

/// A request line's target, its header fields (record, record) and what is read out of them.
func fuzzRequest(_ input: UnsafeRawBufferPointer) {
    var input = FuzzInput(input)
    let target = input.text()
    var headers = HTTPHeaders()
    for _ in 0..<16 where !input.isEmpty { headers.add(input.text(), input.text()) }
    headers.add("Authorization", input.text())
    guard let request = HTTPRequest(method: .get, target: target, headers: headers) else { return }
    for segment in request.segments { precondition(!segment.utf8.contains(0), "no NUL gets through") }
    _ = request.contentType
    _ = TokenGate.token(of: request)
    _ = EntityTag.Condition(request.headers.values("If-Match"))?.matches("tag")
    for pattern in ["/whip/{room}", "/whep/{room}/{identity}", "/v1/rooms/{room}/participants/{identity}", "/"] {
        for value in (PathPattern(pattern).match(request.segments) ?? [:]).values {
            precondition(!value.isEmpty, "a parameter is never empty")
        }
    }
}

/// A connection's bytes, in pieces of the first byte's length: however they are cut, they say the same requests, and none is beyond its limits.
func fuzzConnection(_ input: UnsafeRawBufferPointer) {
    guard let first = input.first else { return }
    let bytes = UnsafeRawBufferPointer(rebasing: input[1...])
    func requests(piece: Int) -> [String] {
        var reader = HTTPRequestReader(
            limits: HTTPRequestReader.Limits(targetBytes: 100, headerBytes: 300, bodyBytes: 200))
        var found: [String] = []
        var isInBody = false
        func readSome() -> Bool {
            if isInBody {
                switch reader.nextBody() {
                case .incomplete: return false
                case .complete(let body):
                    precondition(body.count <= 200, "bodies are bounded")
                    found.append("\(body)")
                case .refused(let refusal):
                    found.append("\(refusal.status)")
                    return true
                }
                isInBody = false
                return readSome()
            }
            switch reader.nextHead() {
            case .incomplete: return false
            case .refused(let refusal):
                found.append("\(refusal.status)")
                return true
            case .complete(let head):
                precondition(head.target.utf8.count <= 100 && !head.target.isEmpty, "targets are bounded")
                for field in head.headers.fields {
                    precondition(
                        !field.value.utf8.contains { $0 == 10 || $0 == 13 || $0 == 0 }, "values are single lines")
                }
                found.append("\(head.method) \(head.target) \(head.authority) \(head.headers.fields)")
                isInBody = true
                return readSome()
            }
        }
        var rest = bytes[...]
        while !rest.isEmpty {
            reader.append(UnsafeRawBufferPointer(rebasing: rest.prefix(piece)))
            rest = rest.dropFirst(piece)
            if readSome() { break }
        }
        return found
    }
    let whole = requests(piece: max(1, bytes.count))
    precondition(requests(piece: 1 + Int(first % 16)) == whole, "the cut does not matter")
}

/// A WebSocket's bytes, in pieces of the first byte's length; however they are cut, they say the same.
func fuzzWebSocket(_ input: UnsafeRawBufferPointer) {
    guard let first = input.first else { return }
    let bytes = UnsafeRawBufferPointer(rebasing: input[1...])
    func events(piece: Int) -> [WebSocketDecoder.Event] {
        var decoder = WebSocketDecoder(maximumMessageBytes: 1_000)
        var events: [WebSocketDecoder.Event] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            decoder.receive(UnsafeRawBufferPointer(rebasing: rest.prefix(piece)), events: &events)
            rest = rest.dropFirst(piece)
        }
        return events
    }
    let whole = events(piece: max(1, bytes.count))
    precondition(events(piece: 1 + Int(first % 16)) == whole, "the cut does not matter")
    for case .message(let message) in whole {
        switch message {
        case .text(let text): precondition(text.utf8.count <= 1_000, "messages are bounded")
        case .binary(let binary): precondition(binary.count <= 1_000, "messages are bounded")
        }
    }
}

/// An access token: the text as it is, and as the claims of a token that is signed rightly.
enum TokenTarget {
    static let secret = "secret-secret-secret-secret-0001"

    static func start() -> (UnsafeRawBufferPointer) -> Void {
        let verifier = TokenVerifier(keys: [APIKey(name: "key1", secret: secret)])
        return { input in
            let text = String(decoding: input, as: UTF8.self)
            if (try? verifier.verify(text, at: 1_700_000_000)) != nil {
                precondition(text.split(separator: ".").count == 3, "only tokens are good")
            }
            guard let claims = try? verifier.verify(sign(Array(input)), at: 1_700_000_000) else { return }
            precondition(claims.expiresAt > 1_699_999_000, "and only those that last")
            guard let again = try? verifier.mint(claims) else { return }
            precondition((try? verifier.verify(again, at: 1_700_000_000)) == claims, "claims are written as read")
        }
    }

    /// A token of any claims.
    static func sign(_ claims: [UInt8]) -> String {
        let body = base64(Array(#"{"alg":"HS256","typ":"JWT"}"#.utf8)) + "." + base64(claims)
        return body + "." + base64(Digest.hmacSHA256(key: Array(secret.utf8), Array(body.utf8)))
    }

    private static func base64(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString().filter { $0 != "=" }
            .map { $0 == "+" ? "-" : $0 == "/" ? "_" : String($0) }.joined()
    }
}
