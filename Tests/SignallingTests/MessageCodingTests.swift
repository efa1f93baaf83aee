import Primitives
import RoomService
import Rooms
import Testing

@testable import Signalling

@Suite("martlet.v1: messages on data channels")
struct MessageCodingTests {
    private static let header = #"{"topic":"file","to":["bob"]}"#

    private static func binary(_ header: String, _ content: [UInt8]) -> DataPayload {
        let bytes = Array(header.utf8)
        return DataPayload(
            isText: false, bytes: [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xff)] + bytes + content)
    }

    @Test("What a client sends is understood; the label says whether it is reliable")
    func decoding() {
        let decode = MessageCoding.codec.decode
        #expect(
            decode("reliable", DataPayload(text: #"{"topic":"chat","text":"hi","new":1}"#))
                == RoomMessage(topic: "chat", content: .text("hi")))
        #expect(
            decode("lossy", DataPayload(text: #"{"text":""}"#))
                == RoomMessage(topic: "", content: .text(""), isReliable: false))
        #expect(
            decode("reliable", Self.binary(Self.header, [0, 255]))
                == RoomMessage(topic: "file", content: .binary([0, 255]), to: ["bob"]))
    }

    @Test("Malformed messages are refused")
    func malformed() {
        let decode = MessageCoding.codec.decode
        for text in ["", "hi", "[]", "{}", #"{"topic":1,"text":"x"}"#, #"{"to":"bob","text":"x"}"#] {
            #expect(decode("reliable", DataPayload(text: text)) == nil, "\(text)")
        }
        let whole = Self.binary(Self.header, [])
        for length in 0..<whole.bytes.count {
            #expect(decode("reliable", DataPayload(isText: false, bytes: Array(whole.bytes[..<length]))) == nil)
        }
    }

    @Test("What a client receives names its sender and keeps the content")
    func encoding() throws {
        var message = RoomMessage(topic: "chat", content: .text("é"))
        message.participant = "PA_1"
        message.identity = "bob"
        let text = try #require(MessageCoding.codec.encode(message))
        #expect(text == DataPayload(text: #"{"from":"PA_1","identity":"bob","text":"é","topic":"chat"}"#))
        message.content = .binary([1, 2])
        let binary = try #require(MessageCoding.codec.encode(message))
        #expect(binary == Self.binary(#"{"from":"PA_1","identity":"bob","topic":"chat"}"#, [1, 2]))
        message.content = .foreign("other", [])
        #expect(MessageCoding.codec.encode(message) == nil)
    }
}
