/// What one place of a JSON text contains, in a few words; for messages if something else was expected.
struct JSONGlimpse: Decodable {
    /// A short value itself, otherwise its type; nil if there is nothing.
    let words: String?

    /// The place: an array of member names and indices, in the decoder's `userInfo`.
    static let path: CodingUserInfoKey = {
        guard let key = CodingUserInfoKey(rawValue: "path") else { preconditionFailure("a key is any text") }
        return key
    }()

    init(from decoder: any Decoder) throws {
        words = try? Self.look(at: (decoder.userInfo[Self.path] as? [String] ?? [])[...], in: decoder)
    }

    private static func look(at path: ArraySlice<String>, in decoder: any Decoder) throws -> String {
        guard let name = path.first else { return words(for: decoder) }
        if let index = Int(name), var elements = try? decoder.unkeyedContainer() {
            while elements.currentIndex < index { _ = try elements.superDecoder() }
            return try look(at: path.dropFirst(), in: elements.superDecoder())
        }
        let members = try decoder.container(keyedBy: StrictKeys.self)
        return try look(at: path.dropFirst(), in: members.superDecoder(forKey: StrictKeys(stringValue: name)))
    }

    private static func words(for decoder: any Decoder) -> String {
        guard let value = try? decoder.singleValueContainer() else { return "nothing" }
        if value.decodeNil() { return "null" }
        if let flag = try? value.decode(Bool.self) { return "\(flag)" }
        if let whole = try? value.decode(Int64.self) { return "\(whole)" }
        if let number = try? value.decode(Double.self) { return "\(number)" }
        if let text = try? value.decode(String.self) {
            return text.count <= 40 ? "\"\(text)\"" : "a string of \(text.count) characters"
        }
        return (try? decoder.unkeyedContainer()) == nil ? "an object" : "an array"
    }
}
