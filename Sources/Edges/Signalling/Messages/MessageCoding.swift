import EdgeSupport
import Foundation
import Primitives
public import RoomService
import Rooms

/// Messages between members as martlet.v1 writes them (Protocol.md section 11).
public enum MessageCoding {
    /// On data channels.
    public static let codec = MessageCodec(decode: decode, encode: encode)

    /// Bytes of the length before the JSON of a binary message.
    private static let lengthBytes = 2

    /// A text message is a JSON object; a binary one is the length of a JSON object, the object, and the content.
    private static func decode(_ label: String, _ payload: DataPayload) -> RoomMessage? {
        let isReliable = label != DataProtocol.martlet.lossyLabel
        if payload.isText {
            guard let header = try? JSONCoding.decode(MessageModel.self, from: payload.bytes), let text = header.text
            else { return nil }
            return RoomMessage(topic: header.topic ?? "", content: .text(text), isReliable: isReliable, to: header.to)
        }
        guard payload.bytes.count >= lengthBytes else { return nil }
        let length = Int(payload.bytes[0]) << 8 | Int(payload.bytes[1])
        guard payload.bytes.count >= lengthBytes + length,
            let header = try? JSONCoding.decode(
                MessageModel.self, from: Array(payload.bytes[lengthBytes..<(lengthBytes + length)]))
        else { return nil }
        return RoomMessage(
            topic: header.topic ?? "", content: .binary(Array(payload.bytes[(lengthBytes + length)...])),
            isReliable: isReliable, to: header.to)
    }

    private static func encode(_ message: RoomMessage) -> DataPayload? {
        var header = MessageModel(from: message.participant, identity: message.identity, topic: message.topic)
        switch message.content {
        case .text(let text):
            header.text = text
            return DataPayload(isText: true, bytes: JSONCoding.encode(header))
        case .binary(let bytes):
            let json = JSONCoding.encode(header)
            let length = UInt16(clamping: json.count)
            return DataPayload(isText: false, bytes: [UInt8(length >> 8), UInt8(length & 0xff)] + json + bytes)
        case .foreign: return nil
        }
    }
}

/// The fields of a message on a data channel.
private struct MessageModel: Codable {
    var from: String?
    var identity: String?
    var topic: String?
    var to: [String]?
    var text: String?
}

extension Fields {
    /// The fields of `data`.
    func message() throws(SignallingError) -> RoomMessage {
        let text = try self.text("text"), encoded = try self.text("bytes")
        let content: RoomMessage.Content
        switch (text, encoded) {
        case (let text?, nil): content = .text(text)
        case (nil, let encoded?):
            guard let bytes = Data(base64Encoded: encoded) else { throw .invalid(fault("bytes", wanted: "base64")) }
            content = .binary(Array(bytes))
        default: throw .invalid(fault("text", wanted: "a string, or bytes in base64 in its place"))
        }
        var message = RoomMessage(
            topic: try self.text("topic") ?? "", content: content, isReliable: try flag("reliable") ?? true,
            to: try texts("to"))
        message.sequence = try messageNumber()
        return message
    }

    /// The number by which the room recognizes a message that is sent again after a resume.
    private func messageNumber() throws(SignallingError) -> UInt32? {
        guard let number = try integer("sequence") else { return nil }
        guard let sequence = UInt32(exactly: number), sequence > 0 else {
            throw .invalid(fault("sequence", wanted: "1 to \(UInt32.max)"))
        }
        return sequence
    }
}

extension RoomMessage {
    /// Writes the fields of a `data` event.
    func encode(to fields: inout FieldWriter) throws {
        try fields.set("from", participant)
        try fields.set("identity", identity)
        try fields.set("topic", topic)
        switch content {
        case .text(let text): try fields.set("text", text)
        case .binary(let bytes): try fields.set("bytes", Data(bytes).base64EncodedString())
        case .foreign: break
        }
    }
}
