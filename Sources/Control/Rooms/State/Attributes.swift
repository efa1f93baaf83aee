import AccessTokens

/// A participant's attributes: named texts.
extension [String: String] {
    /// The size of names and texts together.
    var byteCount: Int { reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count } }

    /// These attributes after `changes`; an empty text removes the name. As many as a token may have, together at most as long as metadata.
    func changed(by changes: [String: String]) throws(RoomError) -> [String: String] {
        let changed = merging(changes) { $1 }.filter { !$0.value.isEmpty }
        guard changed.count <= AccessTokenLimits.attributeCount, changed.byteCount <= AccessTokenLimits.metadataBytes
        else { throw RoomError(.tooLarge, "the attributes are too many or too long") }
        for (name, text) in changes {
            try TextRule.label.check(name, "an attribute's name")
            try TextRule.metadata.check(text, "an attribute's text")
        }
        return changed
    }
}
