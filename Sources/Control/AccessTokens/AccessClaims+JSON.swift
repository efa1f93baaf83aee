extension AccessClaims {
    /// Reads the claims of a verified token.
    init(_ token: borrowing JSONWebToken, issuer: String) throws(AccessTokenError) {
        guard let expiresAt = try token.integer("exp") else { throw .noExpiry }
        self.init(
            apiKey: issuer, identity: try token.string("sub", limit: AccessTokenLimits.identityBytes),
            name: try token.string("name", limit: AccessTokenLimits.nameBytes),
            metadata: try token.string("metadata", limit: AccessTokenLimits.metadataBytes), expiresAt: expiresAt,
            notBefore: try token.integer("nbf"), issuedAt: try token.integer("iat"))
        guard let json = token.json("video"), json != "null" else { return }
        guard json.first == "{", let members = JSONWebToken(members: json) else { throw .badClaim }
        video = try VideoGrant(members)
    }

    /// Whether every text is short enough to be accepted again.
    var areWithinLimits: Bool {
        (identity?.utf8.count ?? 0) <= AccessTokenLimits.identityBytes
            && (name?.utf8.count ?? 0) <= AccessTokenLimits.nameBytes
            && (metadata?.utf8.count ?? 0) <= AccessTokenLimits.metadataBytes
            && (video.room?.utf8.count ?? 0) <= AccessTokenLimits.roomBytes
    }

    /// Writes the claims; false when the library refuses one.
    func write(into token: borrowing JSONWebToken) -> Bool {
        guard token.set("iss", apiKey), token.set("exp", expiresAt) else { return false }
        if let notBefore, !token.set("nbf", notBefore) { return false }
        if let issuedAt, !token.set("iat", issuedAt) { return false }
        if let identity, !token.set("sub", identity) { return false }
        if let name, !token.set("name", name) { return false }
        if let metadata, !token.set("metadata", metadata) { return false }
        guard let members = JSONWebToken(), video.write(into: members), let json = members.json(nil) else {
            return false
        }
        return token.merge(json: "{\"video\":\(json)}")
    }
}

extension VideoGrant {
    /// Reads the members of a `video` object; unknown members are left alone.
    init(_ members: borrowing JSONWebToken) throws(AccessTokenError) {
        room = try members.string("room", limit: AccessTokenLimits.roomBytes)
        roomJoin = try members.bool("roomJoin") ?? false
        roomCreate = try members.bool("roomCreate") ?? false
        roomList = try members.bool("roomList") ?? false
        roomAdmin = try members.bool("roomAdmin") ?? false
        canPublish = try members.bool("canPublish")
        canSubscribe = try members.bool("canSubscribe")
        canPublishData = try members.bool("canPublishData")
        hidden = try members.bool("hidden") ?? false
        recorder = try members.bool("recorder") ?? false
        if let json = members.json("canPublishSources"), json != "null" {
            canPublishSources = try Self.sources(json)
        }
        maxVideoSubscriptions = try Self.limit("maxVideoSubscriptions", of: members).map { Int($0) }
        maxDownlinkBitrate = try Self.limit("maxDownlinkBitrate", of: members)
        maxUplinkBitrate = try Self.limit("maxUplinkBitrate", of: members)
    }

    /// A limit; a negative or absurd one is a mistake, not no limit.
    private static func limit(_ name: String, of members: borrowing JSONWebToken) throws(AccessTokenError) -> Int64? {
        guard let value = try members.integer(name) else { return nil }
        guard (0...1_000_000_000_000).contains(value) else { throw .badClaim }
        return value
    }

    /// Writes what differs from the default.
    func write(into members: borrowing JSONWebToken) -> Bool {
        if let room, !members.set("room", room) { return false }
        let flags = [
            ("roomJoin", roomJoin), ("roomCreate", roomCreate), ("roomList", roomList), ("roomAdmin", roomAdmin),
            ("hidden", hidden), ("recorder", recorder),
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
        guard let canPublishSources else { return true }
        // An empty list would read as "not restricted": a set of nothing is written as a word that grants nothing.
        let words = canPublishSources.isEmpty ? ["none"] : canPublishSources.map(\.rawValue).sorted()
        let names = words.map { "\"\($0)\"" }.joined(separator: ",")
        return members.merge(json: "{\"canPublishSources\":[\(names)]}")
    }

    /// The sources in a JSON array of plain words. An unknown word grants nothing; it never widens the grant.
    private static func sources(_ json: String) throws(AccessTokenError) -> Set<GrantedSource>? {
        guard json.utf8.count <= 512, json.first == "[", json.last == "]" else { throw .badClaim }
        let inner = json.dropFirst().dropLast()
        // An empty list is what libraries write for "not restricted".
        if inner.isEmpty { return nil }
        var sources = Set<GrantedSource>()
        for item in inner.split(separator: ",", omittingEmptySubsequences: false) {
            guard item.count >= 2, item.first == "\"", item.last == "\"" else { throw .badClaim }
            if let source = GrantedSource(rawValue: String(item.dropFirst().dropLast())) { sources.insert(source) }
        }
        return sources
    }
}
