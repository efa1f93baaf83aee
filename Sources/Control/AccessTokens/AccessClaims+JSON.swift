extension AccessClaims {
    /// Reads the claims of a verified token.
    init(_ token: borrowing JSONObject, issuer: String) throws(AccessTokenError) {
        guard let expiresAt = try token.integer("exp") else { throw .noExpiry }
        self.init(
            apiKey: issuer, identity: try token.string("sub", limit: AccessTokenLimits.identityBytes),
            name: try token.string("name", limit: AccessTokenLimits.nameBytes),
            metadata: try token.string("metadata", limit: AccessTokenLimits.metadataBytes), expiresAt: expiresAt,
            notBefore: try token.integer("nbf"), issuedAt: try token.integer("iat"),
            tokenID: try token.string("jti", limit: AccessTokenLimits.tokenIDBytes))
        attributes =
            try token.texts(
                "attributes", limit: AccessTokenLimits.attributeCount, bytes: AccessTokenLimits.metadataBytes) ?? [:]
        // Others may mean something else by it.
        kind = try? token.string("kind", limit: AccessTokenLimits.kindBytes)
        if let members = try token.object("video") { video = try VideoGrant(members) }
    }

    /// Whether every text is short enough to be accepted again.
    var areWithinLimits: Bool {
        (identity?.utf8.count ?? 0) <= AccessTokenLimits.identityBytes
            && (name?.utf8.count ?? 0) <= AccessTokenLimits.nameBytes
            && (metadata?.utf8.count ?? 0) <= AccessTokenLimits.metadataBytes
            && attributes.count <= AccessTokenLimits.attributeCount
            && attributes.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count } <= AccessTokenLimits.metadataBytes
            && (kind?.utf8.count ?? 0) <= AccessTokenLimits.kindBytes
            && (tokenID?.utf8.count ?? 0) <= AccessTokenLimits.tokenIDBytes
            && (video.room?.utf8.count ?? 0) <= AccessTokenLimits.roomBytes
            && (video.preset?.utf8.count ?? 0) <= AccessTokenLimits.roomBytes
            && (video.destinationRoom?.utf8.count ?? 0) <= AccessTokenLimits.roomBytes
            && (video.subscribeRules?.count ?? 0) <= AccessTokenLimits.subscribeRules
            && video.subscribeRules?.allSatisfy(\.isWithinLimits) ?? true
    }

    /// Writes the claims; false if one cannot be written.
    func write(into token: borrowing JSONObject) -> Bool {
        guard token.set("iss", apiKey), token.set("exp", expiresAt) else { return false }
        if let notBefore, !token.set("nbf", notBefore) { return false }
        if let issuedAt, !token.set("iat", issuedAt) { return false }
        if let tokenID, !token.set("jti", tokenID) { return false }
        if let identity, !token.set("sub", identity) { return false }
        if let name, !token.set("name", name) { return false }
        if let metadata, !token.set("metadata", metadata) { return false }
        if let kind, !token.set("kind", kind) { return false }
        if !attributes.isEmpty {
            guard let members = JSONObject() else { return false }
            for (name, text) in attributes where !members.set(name, text) { return false }
            guard token.set("attributes", members) else { return false }
        }
        guard let members = JSONObject(), video.write(into: members) else { return false }
        return token.set("video", members)
    }
}

extension VideoGrant {
    /// Reads the members of a `video` object; unknown members are ignored.
    init(_ members: borrowing JSONObject) throws(AccessTokenError) {
        room = try members.string("room", limit: AccessTokenLimits.roomBytes)
        roomJoin = try members.bool("roomJoin") ?? false
        roomCreate = try members.bool("roomCreate") ?? false
        roomList = try members.bool("roomList") ?? false
        roomAdmin = try members.bool("roomAdmin") ?? false
        canPublish = try members.bool("canPublish")
        canSubscribe = try members.bool("canSubscribe")
        canPublishData = try members.bool("canPublishData")
        canUpdateOwnMetadata = try members.bool("canUpdateOwnMetadata") ?? false
        hidden = try members.bool("hidden") ?? false
        recorder = try members.bool("recorder") ?? false
        roomRecord = try members.bool("roomRecord") ?? false
        canPublishSources = try Self.sources(of: members)
        subscribeRules = try Self.rules(of: members)
        preset = try members.string("preset", limit: AccessTokenLimits.roomBytes)
        destinationRoom = try members.string("destinationRoom", limit: AccessTokenLimits.roomBytes)
        maxVideoSubscriptions = try Self.limit("maxVideoSubscriptions", of: members).map { Int($0) }
        maxDownlinkBitrate = try Self.limit("maxDownlinkBitrate", of: members)
        maxUplinkBitrate = try Self.limit("maxUplinkBitrate", of: members)
    }

    /// A limit; a negative or absurd one is a mistake, not no limit.
    private static func limit(_ name: String, of members: borrowing JSONObject) throws(AccessTokenError) -> Int64? {
        guard let value = try members.integer(name) else { return nil }
        guard (0...1_000_000_000_000).contains(value) else { throw .badClaim }
        return value
    }

    /// Writes what differs from the default.
    func write(into members: borrowing JSONObject) -> Bool {
        if let room, !members.set("room", room) { return false }
        if let preset, !members.set("preset", preset) { return false }
        if let destinationRoom, !members.set("destinationRoom", destinationRoom) { return false }
        let flags = [
            ("roomJoin", roomJoin), ("roomCreate", roomCreate), ("roomList", roomList), ("roomAdmin", roomAdmin),
            ("hidden", hidden), ("recorder", recorder), ("canUpdateOwnMetadata", canUpdateOwnMetadata),
            ("roomRecord", roomRecord),
        ]
        for (name, value) in flags where value {
            if !members.set(name, value) { return false }
        }
        let permissions = [
            ("canPublish", canPublish), ("canSubscribe", canSubscribe), ("canPublishData", canPublishData),
        ]
        for case (let name, .some(let value)) in permissions {
            if !members.set(name, value) { return false }
        }
        let limits = [
            ("maxVideoSubscriptions", maxVideoSubscriptions.map { Int64($0) }),
            ("maxDownlinkBitrate", maxDownlinkBitrate), ("maxUplinkBitrate", maxUplinkBitrate),
        ]
        for case (let name, .some(let value)) in limits {
            if !members.set(name, value) { return false }
        }
        if let subscribeRules {
            let isWritten = members.set("subscribeRules", count: subscribeRules.count) { rule, index in
                subscribeRules[index].write(into: rule)
            }
            guard isWritten else { return false }
        }
        guard let canPublishSources else { return true }
        // An empty list would be read as "not restricted", so an empty set is written as a word that grants nothing.
        let words = canPublishSources.isEmpty ? ["none"] : canPublishSources.map(\.rawValue).sorted()
        return members.set("canPublishSources", words)
    }

    private static func rules(of members: borrowing JSONObject) throws(AccessTokenError) -> [GrantedSubscribeRule]? {
        var rules: [GrantedSubscribeRule] = []
        let isPresent = try members.forEachObject("subscribeRules", limit: AccessTokenLimits.subscribeRules) {
            (rule) throws(AccessTokenError) in
            rules.append(try GrantedSubscribeRule(rule))
        }
        return isPresent ? rules : nil
    }

    /// The named sources; nil if they are not restricted. An unknown word grants nothing; it never widens the grant.
    private static func sources(of members: borrowing JSONObject) throws(AccessTokenError) -> Set<GrantedSource>? {
        // Libraries write an empty list for "not restricted".
        guard let words = try members.strings("canPublishSources", limit: 32), !words.isEmpty else { return nil }
        return Set(words.compactMap(GrantedSource.init))
    }
}
