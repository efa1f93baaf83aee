import EdgeSupport
import MediaControl
import Primitives
import RoomService
import Rooms

/// What can be changed of a room besides its policy.
struct RoomChange: Codable {
    var metadata: String?

    private enum CodingKeys: String, CodingKey, CaseIterable { case metadata }

    init(metadata: String?) { self.metadata = metadata }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        metadata = try fields.text(.metadata, .metadata)
    }
}

/// What can be changed of a participant. A member that a merge patch removes (null) is reset to what its token grants, a text to an empty one. A participant
/// that may publish from any source has no list of sources; removing the list means the same.
struct ParticipantEdit: Codable {
    var name: String?
    var metadata: String?
    var permissions: Permission?

    /// The permissions that can change during a stay.
    struct Permission: Codable {
        var canPublish: Bool?
        var canSubscribe: Bool?
        var canPublishData: Bool?
        var publishSources: [TrackSource]?
        var roomAdmin: Bool?

        private enum CodingKeys: String, CodingKey, CaseIterable {
            case canPublish, canSubscribe, canPublishData, publishSources, roomAdmin
        }

        init(_ permissions: Permissions) {
            canPublish = permissions.canPublish
            canSubscribe = permissions.canSubscribe
            canPublishData = permissions.canPublishData
            publishSources = permissions.publishSources?.sorted { $0.rawValue < $1.rawValue }
            roomAdmin = permissions.roomAdmin
        }

        init(from decoder: any Decoder) throws {
            try StrictKeys.check(decoder, CodingKeys.self)
            let fields = try decoder.container(keyedBy: CodingKeys.self)
            canPublish = try fields.decodeIfPresent(Bool.self, forKey: .canPublish)
            canSubscribe = try fields.decodeIfPresent(Bool.self, forKey: .canSubscribe)
            canPublishData = try fields.decodeIfPresent(Bool.self, forKey: .canPublishData)
            publishSources = try fields.decodeIfPresent([TrackSource].self, forKey: .publishSources)
            guard publishSources?.count ?? 0 <= Bounds.words else {
                throw JSONFault(
                    fields.codingPath, CodingKeys.publishSources, .unexpected(wanted: "at most \(Bounds.words) sources")
                )
            }
            roomAdmin = try fields.decodeIfPresent(Bool.self, forKey: .roomAdmin)
        }

        /// `current`, replaced by these permissions, and by those of the token (`granted`) where these are absent.
        func applied(to current: Permissions, granted: Permissions) -> Permissions {
            var permissions = current
            permissions.canPublish = canPublish ?? granted.canPublish
            permissions.canSubscribe = canSubscribe ?? granted.canSubscribe
            permissions.canPublishData = canPublishData ?? granted.canPublishData
            permissions.publishSources = publishSources.map(Set.init)
            permissions.roomAdmin = roomAdmin ?? granted.roomAdmin
            return permissions
        }
    }

    private enum CodingKeys: String, CodingKey, CaseIterable { case name, metadata, permissions }

    init(_ info: ParticipantInfo) {
        name = info.name
        metadata = info.metadata
        permissions = Permission(info.permissions)
    }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(
            decoder, CodingKeys.self,
            below: ["permissions": ["canPublish", "canSubscribe", "canPublishData", "publishSources", "roomAdmin"]])
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        name = try fields.text(.name, .label)
        metadata = try fields.text(.metadata, .metadata)
        permissions = try fields.decodeIfPresent(Permission.self, forKey: .permissions)
    }

    /// What it changes of a participant.
    func change(of detail: ParticipantDetail) -> RoomHost.ParticipantChange {
        var change = RoomHost.ParticipantChange()
        change.name = name ?? ""
        change.metadata = metadata ?? ""
        change.permissions = (permissions ?? Permission(detail.granted))
            .applied(to: detail.info.permissions, granted: detail.granted)
        return change
    }
}

/// A lock; without a password, only moderators can join.
struct LockRequest: Decodable {
    var password: String?

    private enum CodingKeys: String, CodingKey, CaseIterable { case password }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        password = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent(String.self, forKey: .password)
    }
}

/// A ban as JSON shows it.
struct BanModel: Encodable {
    var identity: String
    /// Milliseconds since 1970.
    var until: Int64
    var reason: String

    init(_ ban: Bans.Ban) {
        identity = ban.identity
        until = ban.until
        reason = ban.reason
    }
}

/// An operator's request for a ban.
struct BanRequest: Decodable {
    /// A day by default.
    var seconds: Int64
    var reason: String

    private static let standardSeconds: Int64 = 86_400

    private enum CodingKeys: String, CodingKey, CaseIterable { case seconds, reason }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        seconds = try fields.decodeIfPresent(Int64.self, forKey: .seconds) ?? Self.standardSeconds
        reason = try fields.decodeIfPresent(String.self, forKey: .reason) ?? ""
        let longest = Int64(Bans.longest.seconds)
        guard (1...longest).contains(seconds) else {
            throw JSONFault(fields.codingPath, CodingKeys.seconds, .unexpected(wanted: "1 to \(longest)"))
        }
        guard let fault = TextRule.label.fault(in: reason) else { return }
        throw JSONFault(fields.codingPath, CodingKeys.reason, .refused("\(fault)"))
    }
}
