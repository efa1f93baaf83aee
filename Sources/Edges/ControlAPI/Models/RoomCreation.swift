import EdgeSupport
import Rooms

/// What `POST /v1/rooms` takes.
struct RoomCreation: Decodable {
    var name: String?
    var metadata: String?
    var preset: String?
    var policy: PolicyModel?
    /// The room whose media worker it shares, so that participants can be moved between the two.
    var beside: String?

    private enum CodingKeys: String, CodingKey, CaseIterable { case name, metadata, preset, policy, beside }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self, below: ["policy": PolicyModel.memberNames])
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        name = try fields.text(.name, .identifier)
        metadata = try fields.text(.metadata, .metadata)
        preset = try fields.text(.preset, .identifier)
        beside = try fields.text(.beside, .identifier)
        policy = try fields.decodeIfPresent(PolicyModel.self, forKey: .policy)
    }
}

extension KeyedDecodingContainer {
    /// A text that conforms to `rule`; nil if there is none.
    func text(_ key: Key, _ rule: TextRule) throws -> String? {
        guard let text = try decodeIfPresent(String.self, forKey: key) else { return nil }
        if let fault = rule.fault(in: text) { throw JSONFault(codingPath, key, .refused("\(fault)")) }
        return text
    }
}
