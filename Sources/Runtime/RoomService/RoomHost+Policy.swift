public import Primitives
public import Rooms

// Rules: of a room, of a participant in it, and those that outlast rooms.

extension RoomHost {
    /// The rules of a room.
    public func rules(ofRoom name: String) throws(RoomError) -> RoomRules { rules(of: try hosted(named: name)) }

    private func rules(of hosted: HostedRoom) -> RoomRules {
        RoomRules(
            room: hosted.room.sid, policy: hosted.room.policy, document: hosted.document, preset: hosted.preset,
            revision: hosted.room.policyRevision)
    }

    /// Replaces the room's own document; in force at once.
    ///
    /// Throws `revision_mismatch` if `revision` is not that of the rules in force (nil: any).
    public func setPolicy(
        _ document: PolicyDocument, ofRoom name: String, ifRevision revision: UInt64?, removesExcess: Bool = false,
        by author: String? = nil
    ) async throws(RoomError) -> RoomRules {
        let hosted = try hosted(named: name)
        try check(revision, hosted)
        let policy = document.applied(to: hosted.base)
        let revision = try await step(hosted) { (room, turn) throws(RoomError) in
            try room.setPolicy(policy, removesExcess: removesExcess, by: author, turn: &turn)
            hosted.document = document
            return room.policyRevision
        }
        return RoomRules(
            room: hosted.room.sid, policy: policy, document: document, preset: hosted.preset, revision: revision)
    }

    /// Replaces a room's own policy by the result of `change`, in one step: no other change comes in between.
    public func changePolicy(
        ofRoom name: String, _ change: @Sendable (PolicyDocument) -> PolicyDocument
    ) async throws(RoomError) {
        let document = change(try hosted(named: name).document)
        _ = try await setPolicy(document, ofRoom: name, ifRevision: nil)
    }

    /// The participants that ``setPolicy(_:ofRoom:ifRevision:removesExcess:by:)`` would affect.
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

// MARK: - Participants

extension RoomHost {
    /// Changes to one participant; nil leaves a value unchanged.
    public struct ParticipantChange: Sendable, Hashable {
        public var name: String?
        public var metadata: String?
        /// Named texts; an empty one removes the name, others remain.
        public var attributes: [String: String]?
        public var permissions: Permissions?

        /// Changes nothing.
        public init() {}
    }

    /// Changes a participant, named by sid or identity. Either the whole change is applied or nothing.
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

    /// The same with the result of `change`, in one step: no other change comes in between. If `change` refuses, nothing
    /// changes.
    public func change<Refusal: Error>(
        _ participant: String, in name: String,
        _ change: @Sendable (ParticipantDetail) -> Result<ParticipantChange, Refusal>
    ) async throws(RoomError) -> Result<ParticipantDetail, Refusal> {
        let detail = try self.participant(participant, in: name)
        switch change(detail) {
        case .success(let change): return .success(try await self.change(detail.info.sid, in: name, change))
        case .failure(let refusal): return .failure(refusal)
        }
    }

    /// Carries out a request for a participant, named by sid or identity, that it could make itself.
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

    /// Sets the rules for what a participant may receive from now on; nil: its token's, or else the room's.
    public func setSubscribeRules(
        _ rules: [SubscribeRule]?, of participant: String, in name: String
    ) async throws(RoomError) -> ParticipantDetail {
        try await step(try hosted(named: name)) { (room, turn) throws(RoomError) in
            try room.setSubscribeRules(rules, of: participant, turn: &turn)
        }
        return try self.participant(participant, in: name)
    }

    /// Sets the metadata of a room.
    public func setMetadata(_ metadata: String, ofRoom name: String) async throws(RoomError) -> RoomInfo {
        try await step(try hosted(named: name)) { (room, turn) throws(RoomError) in
            try room.setMetadata(metadata, turn: &turn)
            return room.info
        }
    }
}

// MARK: - Standing rules

extension RoomHost {
    /// Restores rules that were stored in an earlier run of the server. Call before the first join. Expired ones are skipped.
    public func restore(_ kept: [StandingRule]) { rules.restore(kept, newTurn()) }

    /// Every preset by name.
    public func listPresets() -> [(name: String, document: PolicyDocument)] {
        rules.listedPresets
    }

    /// One preset.
    public func preset(named name: String) throws(RoomError) -> PolicyDocument {
        guard let document = rules.preset(name) else {
            throw counted(RoomError(.presetNotFound, "there is no such preset"))
        }
        return document
    }

    /// Creates or replaces a preset, for rooms that are created from now on. Returns whether it is new.
    public func setPreset(_ document: PolicyDocument, named name: String) async throws(RoomError) -> Bool {
        let (isNew, rule) = try placePreset(document, named: name)
        await ruleWriter.write(rule).value
        return isNew
    }

    private func placePreset(
        _ document: PolicyDocument, named name: String
    ) throws(RoomError) -> (isNew: Bool, rule: StandingRule) {
        do throws(RoomError) {
            return try rules.setPreset(document, named: name)
        } catch {
            throw counted(error)
        }
    }

    /// Replaces a preset by the result of `change`, in one step: no other change comes in between. If `change` refuses, the preset stays as it was.
    public func changePreset<Refusal: Error>(
        named name: String, _ change: @Sendable (PolicyDocument) -> Result<PolicyDocument, Refusal>
    ) async throws(RoomError) -> Result<PolicyDocument, Refusal> {
        let result = change(try preset(named: name))
        if case .success(let document) = result {
            await ruleWriter.write(try placePreset(document, named: name).rule).value
        }
        return result
    }

    /// Deletes a preset; rooms that were created with it keep its rules.
    public func deletePreset(named name: String) async throws(RoomError) {
        _ = try preset(named: name)
        await ruleWriter.write(rules.deletePreset(named: name)).value
    }

    /// The bans of a room that are in force, by identity.
    public func bans(ofRoom name: String) -> [Bans.Ban] { rules.listBans(room: name, now: media.now()) }

    /// The ban of an identity; `ban_not_found` if there is none.
    public func ban(of identity: String, in name: String) throws(RoomError) -> Bans.Ban {
        guard let ban = bans(ofRoom: name).first(where: { $0.identity == identity }) else {
            throw counted(RoomError(.banNotFound, "this identity is not banned from the room"))
        }
        return ban
    }

    /// Bans an identity from a room, and ends its stays there. The room need not exist.
    public func ban(
        _ identity: String, from name: String, for duration: TimeSpan, reason: String
    ) async throws(RoomError) -> Bans.Ban {
        let rule: StandingRule
        do throws(RoomError) {
            rule = try rules.ban(identity, room: name, for: duration, reason: reason, turn: newTurn())
        } catch {
            throw counted(error)
        }
        let made = try ban(of: identity, in: name)
        if let hosted = rooms[name] {
            record(.banChanged(identity: identity, until: made.until, reason: reason), in: hosted)
            hosted.recentMembers.remove(identity)
        }
        let written = ruleWriter.write(rule)
        // After the rule is made: a client whose stay ends may try to join again at once.
        if let hosted = rooms[name] {
            let message = reason.isEmpty ? nil : reason
            await step(hosted) { $0.removeAll(identity: identity, message: message, turn: &$1) }
        }
        await written.value
        return made
    }

    /// Ends a ban.
    public func endBan(of identity: String, in name: String) async throws(RoomError) {
        let rule: StandingRule
        do throws(RoomError) {
            rule = try rules.endBan(of: identity, room: name, now: media.now())
        } catch {
            throw counted(error)
        }
        if let hosted = rooms[name] { record(.banChanged(identity: identity, until: nil, reason: ""), in: hosted) }
        await ruleWriter.write(rule).value
    }

    /// Revokes tokens for `duration`, and ends the stays of participants that joined with them. `author`: who does so, for the event log.
    public func revoke(
        _ subject: Revocations.Subject, for duration: TimeSpan, by author: String? = nil
    ) async throws(RoomError) -> Revocations.Revocation {
        let revocation: Revocations.Revocation
        do throws(RoomError) {
            revocation = try revocations.add(subject, for: duration, turn: newTurn())
        } catch {
            throw counted(error)
        }
        record(.revocationChanged(subject, until: revocation.until, by: author))
        endOutdatedFeeds()
        let closure = StandingRule.Closure(issuedAfter: revocation.issuedAfter, until: revocation.until)
        let written = ruleWriter.write(.revocation(subject, closure))
        await endStays(by: subject)
        await written.value
        return revocation
    }

    /// In all rooms before any worker is awaited: meanwhile a member may be moved to a room that was already processed, or come back with a newer token.
    private func endStays(by subject: Revocations.Subject) async {
        var workers: Set<WorkerIndex> = []
        for hosted in Array(rooms.all) {
            if case .identity(let identity) = subject { hosted.recentMembers.remove(identity) }
            var turn = newTurn()
            hosted.room.endStays(by: subject, turn: &turn)
            let commands = carryOut(turn.effects, hosted)
            if hosted.room.hasNews { alarm.raise() }
            guard !commands.isEmpty else { continue }
            media.post(commands, on: hosted.worker)
            workers.insert(hosted.worker)
        }
        let written = ruleWriter.write(rules.consumeUnkept())
        for worker in workers { try? await media.apply([], on: worker) }
        await written?.value
    }

    /// The revocations in force.
    public func listRevocations() -> [Revocations.Revocation] { revocations.list(now: media.now()) }

    /// Ends a revocation.
    public func endRevocation(of subject: Revocations.Subject, by author: String? = nil) async throws(RoomError) {
        do throws(RoomError) {
            try revocations.remove(subject)
        } catch {
            throw counted(error)
        }
        record(.revocationChanged(subject, until: nil, by: author))
        await ruleWriter.write(.revocation(subject, nil)).value
    }

    /// The cutoff for tokens if something is ended now.
    var closure: TokenClosure {
        TokenClosure(duration: configuration.closedFor, issuedAfter: media.wallClockMilliseconds() / 1_000)
    }

    /// From now on older tokens are no longer valid for the room, or for one identity in it: the deletion or removal stays in effect.
    func refuseOlderTokens(room: String, identity: String?) {
        guard configuration.closedFor > .zero else { return }
        rules.close(
            room: room, identity: identity, closure, now: media.now(), wallClock: media.wallClockMilliseconds())
    }
}

/// Which tokens an operator's intervention has invalidated.
public struct TokenClosure: Sendable, Hashable {
    /// For how long; zero: none.
    public var duration: TimeSpan
    /// Seconds since 1970: a token must have been issued later.
    public var issuedAfter: Int64
}
