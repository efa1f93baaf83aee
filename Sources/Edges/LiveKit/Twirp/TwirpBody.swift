import CLiveKitProtocol
import EdgeSupport
import HTTPServing

/// The bodies of one call, both in the form that the client has chosen.
struct TwirpBody: Sendable {
    private static let protobuf = "application/protobuf"

    let request: HTTPRequest

    private var isJSON: Bool { request.contentType == JSONCoding.contentType }

    /// Reads the request: `initialise` and `unpack` are what protobuf-c makes for its type.
    func read<Message, Value>(
        _ initialise: (UnsafeMutablePointer<Message>?) -> Void, _ unpack: UnpackedMessage<Message>.Unpack,
        _ body: (Message) -> Value
    ) throws(TwirpError) -> Value {
        guard isJSON else {
            guard request.contentType == Self.protobuf else {
                throw TwirpError(
                    .badRoute, "the body must be of type \(Self.protobuf) or \(JSONCoding.contentType)")
            }
            guard let message = UnpackedMessage<Message>(request.body, unpack) else {
                throw TwirpError(.malformed, "the body is not the message of this call")
            }
            return message.read(body)
        }
        let arena = MessageArena()
        let message = arena.make(initialise)
        do {
            let value = try JSONCoding.decode(JSONValue.self, from: request.body)
            try MessageJSON.fill(message, from: value, arena)
        } catch let fault as MessageJSON.Fault {
            throw TwirpError(.malformed, "the member \(fault.member) has the wrong form")
        } catch {
            throw TwirpError(.malformed, "the body is not JSON")
        }
        return withExtendedLifetime(arena) { body(message.pointee) }
    }

    /// The response with a message of `arena`.
    func reply<Message>(_ arena: MessageArena, _ message: UnsafeMutablePointer<Message>) -> HTTPResponse {
        guard isJSON else { return packed(arena.packed(message)) }
        return withExtendedLifetime(arena) { .json(MessageJSON.value(of: message)) }
    }

    /// The response with a message that has one member, a text. It may contain NULs, at which protobuf-c's texts end.
    func reply(_ member: String, _ number: UInt64, _ text: String) -> HTTPResponse {
        guard isJSON else { return packed(text.isEmpty ? [] : WireField.message(number, Array(text.utf8))) }
        return .json([member: text])
    }

    private func packed(_ bytes: [UInt8]) -> HTTPResponse {
        HTTPResponse(
            status: 200, headers: ["Content-Type": Self.protobuf, "Cache-Control": "no-store"], body: bytes)
    }

    /// The response to a call that returns nothing.
    var empty: HTTPResponse {
        isJSON ? .json([String: String]()) : packed([])
    }
}
