/// A reader of objects in which a member nobody knows is a mistake: what operators write is checked, what clients of a
/// protocol send is not.
public struct StrictKeys: CodingKey, Sendable, Hashable {
    /// The member's name.
    public var stringValue: String
    /// Objects have no indices.
    public var intValue: Int? { nil }

    /// The member called `stringValue`.
    public init(stringValue: String) { self.stringValue = stringValue }
    /// nil: objects have no indices.
    public init?(intValue: Int) { nil }

    /// Refuses members other than those of `Keys`.
    public static func check<Keys: CodingKey & CaseIterable>(
        _ decoder: any Decoder, _ keys: Keys.Type
    ) throws {
        let known = Set(keys.allCases.map(\.stringValue))
        let container = try decoder.container(keyedBy: Self.self)
        guard let stranger = container.allKeys.map(\.stringValue).sorted().first(where: { !known.contains($0) }) else {
            return
        }
        throw DecodingError.dataCorrupted(
            .init(codingPath: decoder.codingPath + [Self(stringValue: stranger)], debugDescription: "unknown"))
    }
}
