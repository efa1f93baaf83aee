import EdgeSupport
import MediaControl
import Rooms

/// A subscribe rule as JSON shows it: an action, and one member that selects the tracks.
struct SubscribeRuleModel: Codable, Sendable {
    var action: String
    var all: Bool?
    var participant: String?
    var track: String?
    var kind: String?
    var source: String?

    private enum CodingKeys: String, CodingKey, CaseIterable { case action, all, participant, track, kind, source }

    init(_ rule: SubscribeRule) {
        action = rule.includes ? "include" : "exclude"
        switch rule.match {
        case .all: all = true
        case .participant(let name): participant = name
        case .track(let sid): track = sid
        case .kind(let kind): self.kind = kind.rawValue
        case .source(let source): self.source = source.rawValue
        }
    }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        func demand(_ isMet: Bool, _ key: CodingKeys, _ wanted: String) throws {
            guard !isMet else { return }
            throw JSONFault(fields.codingPath, key, .unexpected(wanted: wanted))
        }
        for key in CodingKeys.allCases where try fields.contains(key) && fields.decodeNil(forKey: key) {
            throw JSONFault(fields.codingPath, key, .unexpected(wanted: "a value, or absent"))
        }
        action = try fields.decode(String.self, forKey: .action)
        try demand(["include", "exclude"].contains(action), .action, "include or exclude")
        all = try fields.decodeIfPresent(Bool.self, forKey: .all)
        try demand(all != false, .all, "true, or absent")
        participant = try fields.text(.participant, .identifier)
        track = try fields.text(.track, .identifier)
        kind = try fields.decodeIfPresent(String.self, forKey: .kind)
        try demand(kind.map { MediaKind(rawValue: $0) != nil } ?? true, .kind, "audio or video")
        source = try fields.decodeIfPresent(String.self, forKey: .source)
        let sources = TrackSource.allCases.map(\.rawValue)
        try demand(source.map(sources.contains) ?? true, .source, sources.joined(separator: ", "))
        let given = [all != nil, participant != nil, track != nil, kind != nil, source != nil].count { $0 }
        guard given == 1 else {
            throw JSONFault(
                JSONFault.names(fields.codingPath),
                .unexpected(wanted: "an action with one of all, participant, track, kind and source"))
        }
    }

    /// The rule. It has exactly one such member, which was checked when it was read.
    var rule: SubscribeRule {
        let match: SubscribeRule.Match =
            if let participant {
                .participant(participant)
            } else if let track {
                .track(track)
            } else if let kind = kind.flatMap(MediaKind.init) {
                .kind(kind)
            } else if let source = source.flatMap(TrackSource.init) {
                .source(source)
            } else {
                .all
            }
        return SubscribeRule(includes: action == "include", match)
    }
}
