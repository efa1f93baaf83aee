/// Header fields in the order of the wire; names compare without regard to case (RFC 9110 section 5.1).
public struct HTTPHeaders: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    /// One field line.
    public struct Field: Sendable, Hashable {
        /// The name as it was given.
        public var name: String
        /// The value without surrounding white space.
        public var value: String
    }

    /// All field lines in order.
    public private(set) var fields: [Field]

    /// No fields.
    public init() { fields = [] }

    /// The given fields in order; a name may appear twice.
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field(name: $0.0, value: $0.1) }
    }

    /// The first value of `name`; setting replaces all of them, and nil removes them.
    public subscript(name: String) -> String? {
        get { fields.first { equalIgnoringCase($0.name, name) }?.value }
        set {
            fields.removeAll { equalIgnoringCase($0.name, name) }
            if let newValue { fields.append(Field(name: name, value: newValue)) }
        }
    }

    /// All values of `name` in order.
    public func values(_ name: String) -> [String] {
        fields.filter { equalIgnoringCase($0.name, name) }.map(\.value)
    }

    /// Whether `token` is an entry of the field `name`, which is a comma-separated list, without regard to case (RFC 9110 section 5.6.1).
    func list(_ name: String, contains token: String) -> Bool {
        fields.contains { field in
            guard equalIgnoringCase(field.name, name) else { return false }
            var rest = Array(field.value.utf8)[...]
            while !rest.isEmpty {
                let entry = rest.prefix { $0 != UInt8(ascii: ",") }
                if entry.count >= token.utf8.count, equalIgnoringCase(trimmed(entry), token.utf8) { return true }
                rest = rest.dropFirst(entry.count + 1)
            }
            return false
        }
    }

    /// Adds a line and keeps others with the same name.
    public mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    /// Adds every field of `other`.
    public mutating func add(contentsOf other: HTTPHeaders) { fields += other.fields }
}

/// Whether two texts are equal except for the case of their ASCII letters.
func equalIgnoringCase(_ a: String, _ b: String) -> Bool { equalIgnoringCase(a.utf8, b.utf8) }

private func equalIgnoringCase(_ a: some Collection<UInt8>, _ b: some Collection<UInt8>) -> Bool {
    a.count == b.count && zip(a, b).allSatisfy { lowercase($0) == lowercase($1) }
}

/// The ASCII letter in lower case; any other byte unchanged.
func lowercase(_ byte: UInt8) -> UInt8 { (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }

/// Text without spaces and tabs at its ends.
func trimmed(_ text: String) -> String { String(decoding: trimmed(Array(text.utf8)[...]), as: UTF8.self) }

/// Bytes without spaces and tabs at their ends.
func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let isInside = { (byte: UInt8) in byte != 0x20 && byte != 0x09 }
    guard let start = bytes.firstIndex(where: isInside), let end = bytes.lastIndex(where: isInside) else { return [] }
    return bytes[start...end]
}
