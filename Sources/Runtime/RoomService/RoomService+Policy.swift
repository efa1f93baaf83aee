import Primitives
public import Rooms

/// The rules of a room: what is in force, and what the room's own document says.
public struct RoomRules: Sendable, Hashable {
    /// The room's sid.
    public var room: String
    /// What is in force: the server's defaults below the preset below the room's own document.
    public var policy: RoomPolicy
    /// What the room itself says.
    public var document: PolicyDocument
    /// The preset that the room was created with.
    public var preset: String?
    /// Grows with each change of what is in force.
    public var revision: UInt64
}

extension RoomService {
    /// The rules of a room.
    public func rules(ofRoom name: String) throws(RoomError) -> RoomRules { rules(of: try hosted(named: name)) }

    private func rules(of hosted: HostedRoom) -> RoomRules {
        RoomRules(
            room: hosted.room.sid, policy: hosted.room.policy, document: hosted.document, preset: hosted.preset,
            revision: hosted.room.policyRevision)
    }

    /// Replaces the room's own document; in force at once.
    ///
    /// Throws `revision_mismatch` where `revision` is not that of the rules in force (nil: any).
    public func setPolicy(
        _ document: PolicyDocument, ofRoom name: String, ifRevision revision: UInt64?, removesExcess: Bool = false
    ) async throws(RoomError) -> RoomRules {
        let hosted = try hosted(named: name)
        try check(revision, hosted)
        let policy = document.applied(to: hosted.base)
        let revision = try await step(hosted) { (room, turn) throws(RoomError) in
            try room.setPolicy(policy, removesExcess: removesExcess, turn: &turn)
            hosted.document = document
            return room.policyRevision
        }
        return RoomRules(
            room: hosted.room.sid, policy: policy, document: document, preset: hosted.preset, revision: revision)
    }

    /// Whom ``setPolicy(_:ofRoom:ifRevision:removesExcess:)`` would concern.
    public func impact(
        of document: PolicyDocument, onRoom name: String, ifRevision revision: UInt64?, removesExcess: Bool
    ) throws(RoomError) -> (rules: RoomRules, impact: PolicyImpact) {
        let hosted = try hosted(named: name)
        try check(revision, hosted)
        let policy = document.applied(to: hosted.base)
        let impact = try hosted.room.impact(of: policy, removesExcess: removesExcess, turn: newTurn())
        var rules = rules(of: hosted)
        rules.policy = policy
        rules.document = document
        return (rules, impact)
    }

    private func check(_ revision: UInt64?, _ hosted: HostedRoom) throws(RoomError) {
        guard let revision, revision != hosted.room.policyRevision else { return }
        throw counted(
            RoomError(.revisionMismatch, "the policy has changed since it was read; read it again and repeat the edit"))
    }
}

// MARK: Presets

extension RoomService {
    /// Some for each kind of room that a company has, and each of its customers.
    static let maximumPresets = 1_000

    /// Every preset by name.
    public func listPresets() -> [(name: String, document: PolicyDocument)] {
        presets.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// One preset.
    public func preset(named name: String) throws(RoomError) -> PolicyDocument {
        guard let document = presets[name] else {
            throw counted(RoomError(.presetNotFound, "there is no such preset"))
        }
        return document
    }

    /// Creates or replaces a preset, for rooms that are created from now on. Returns whether it is new.
    public func setPreset(_ document: PolicyDocument, named name: String) async throws(RoomError) -> Bool {
        do throws(RoomError) {
            try TextRule.identifier.check(name, "the preset's name", tooLong: .invalidRequest)
            guard presets[name] != nil || presets.count < Self.maximumPresets else {
                throw RoomError(.limitExceeded, "the server holds as many presets as it can; delete one first")
            }
        } catch {
            throw counted(error)
        }
        let isNew = presets.updateValue(document, forKey: name) == nil
        await keep(.preset(name: name, document))
        return isNew
    }

    /// Deletes a preset; rooms that were created with it keep its rules.
    public func deletePreset(named name: String) async throws(RoomError) {
        _ = try preset(named: name)
        presets[name] = nil
        await keep(.preset(name: name, nil))
    }
}

// MARK: Participants

extension RoomService {
    /// Changes of one participant; nil leaves what it has.
    public struct ParticipantChange: Sendable, Hashable {
        public var name: String?
        public var metadata: String?
        /// Named texts; an empty one removes the name, others stay as they are.
        public var attributes: [String: String]?
        public var permissions: Permissions?

        /// Changes nothing.
        public init() {}
    }

    /// Changes a participant, named by sid or identity. All of the change or nothing of it.
    public func change(
        _ participant: String, in name: String, _ change: ParticipantChange
    ) async throws(RoomError) -> ParticipantDetail {
        try await step(try hosted(named: name)) { (room, turn) throws(RoomError) in
            if change.name != nil || change.metadata != nil || change.attributes != nil {
                try room.setParticipant(
                    participant, name: change.name, metadata: change.metadata, attributes: change.attributes ?? [:],
                    turn: &turn)
            }
            if let permissions = change.permissions {
                try room.setPermissions(permissions, of: participant, turn: &turn)
            }
        }
        return try self.participant(participant, in: name)
    }

    /// Carries out for a participant, named by sid or identity, what it could request itself.
    public func perform(
        _ request: SessionRequest, as participant: String, in name: String
    ) async throws(RoomError) {
        try await step(try hosted(named: name)) { (room, turn) throws(RoomError) in
            guard let session = room.find(participant) else {
                throw RoomError(.participantNotFound, "there is no such participant")
            }
            try room.perform(request, session: session, turn: &turn)
        }
    }

    /// What a participant may receive from now on; nil: everything.
    public func setSubscribeRules(
        _ rules: [SubscribeRule]?, of participant: String, in name: String
    ) async throws(RoomError) -> ParticipantDetail {
        try await step(try hosted(named: name)) { (room, turn) throws(RoomError) in
            try room.setSubscribeRules(rules, of: participant, turn: &turn)
        }
        return try self.participant(participant, in: name)
    }

    /// Other metadata of a room.
    public func setMetadata(_ metadata: String, ofRoom name: String) async throws(RoomError) -> RoomInfo {
        try await step(try hosted(named: name)) { (room, turn) throws(RoomError) in
            try room.setMetadata(metadata, turn: &turn)
            return room.info
        }
    }

    /// The bans of a room that hold, by identity.
    public func bans(ofRoom name: String) -> [Bans.Ban] { bans.list(room: name, now: media.now()) }

    /// Ends a ban.
    public func endBan(of identity: String, in name: String) async throws(RoomError) {
        do throws(RoomError) {
            try bans.remove(identity, room: name, now: media.now())
        } catch {
            throw counted(error)
        }
        await keep(.ban(identity: identity, room: name, nil))
    }
}
