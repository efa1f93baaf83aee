/// A reader of objects in which an unknown member is a mistake: it checks what operators write, not what clients of a
/// protocol send.
public struct StrictKeys: CodingKey, Sendable, Hashable {
    /// The member's name.
    public var stringValue: String
    /// Objects have no indices.
    public var intValue: Int? { nil }

    /// The member called `stringValue`.
    public init(stringValue: String) { self.stringValue = stringValue }
    /// nil: objects have no indices.
    public init?(intValue: Int) { nil }

    /// Refuses members other than those of `Keys`. `below` are the members of nested objects, for a better guess at what was meant: object
    /// name -> its members.
    public static func check<Keys: CodingKey & CaseIterable>(
        _ decoder: any Decoder, _ keys: Keys.Type, below: [String: [String]] = [:]
    ) throws {
        try check(decoder, known: Keys.allCases.map(\.stringValue), below: below)
    }

    /// The same for members with the names `known`.
    public static func check(
        _ decoder: any Decoder, known: [String], below: [String: [String]] = [:]
    ) throws {
        let container = try decoder.container(keyedBy: Self.self)
        let names = container.allKeys.map(\.stringValue).sorted()
        guard let unknown = names.first(where: { !known.contains($0) }) else { return }
        let place = JSONFault.names(decoder.codingPath)
        let meant = guess(unknown, known, below).map { place + $0 }
        throw JSONFault(place + [unknown], .unknown(meant: meant))
    }

    /// The same name one object further down, or else the nearest name here, or else further down.
    private static func guess(_ name: String, _ known: [String], _ below: [String: [String]]) -> [String]? {
        let objects = below.keys.sorted()
        if let object = objects.first(where: { below[$0]?.contains(name) == true }) { return [object, name] }
        if let near = NearestWord.of(known, to: name) { return [near] }
        for object in objects {
            if let near = NearestWord.of(below[object] ?? [], to: name) { return [object, near] }
        }
        return nil
    }
}
