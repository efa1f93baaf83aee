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

    /// The given fields in order; a name may come twice.
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

    /// Adds a line and keeps the others of the same name.
    public mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    /// Adds every field of `other`.
    public mutating func add(contentsOf other: HTTPHeaders) { fields += other.fields }
}

/// Whether two texts are equal but for the case of their ASCII letters.
func equalIgnoringCase(_ a: String, _ b: String) -> Bool {
    guard a.utf8.count == b.utf8.count else { return false }
    return zip(a.utf8, b.utf8).allSatisfy { lowercase($0) == lowercase($1) }
}

/// The ASCII letter in lower case; any other byte as it is.
func lowercase(_ byte: UInt8) -> UInt8 { (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }
