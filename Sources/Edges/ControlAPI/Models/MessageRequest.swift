import EdgeSupport
import Foundation
import Rooms

/// The body of `sendMessage`.
struct MessageRequest: Decodable {
    var message: RoomMessage

    private enum CodingKeys: String, CodingKey, CaseIterable { case topic, text, bytes, to, reliable }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        let text = try fields.text(.text, upTo: Bounds.messageText)
        let encoded = try fields.text(.bytes, upTo: Bounds.messageBytes)
        let content: RoomMessage.Content
        switch (text, encoded) {
        case (let text?, nil): content = .text(text)
        case (nil, let encoded?):
            guard let bytes = Data(base64Encoded: encoded) else {
                throw JSONFault(fields.codingPath, CodingKeys.bytes, .unexpected(wanted: "base64"))
            }
            content = .binary(Array(bytes))
        default:
            throw JSONFault(
                fields.codingPath, CodingKeys.text, .unexpected(wanted: "a string, or bytes in its place"))
        }
        message = RoomMessage(
            topic: try fields.decodeIfPresent(String.self, forKey: .topic) ?? "", content: content,
            isReliable: try fields.decodeIfPresent(Bool.self, forKey: .reliable) ?? true,
            to: try fields.texts(.to, upTo: Bounds.receivers))
    }
}
