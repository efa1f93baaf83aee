/// The parameters of an `a=fmtp` (RFC 8866 section 6.15) in their order, names compared without regard to case.
public struct FormatParameters: Sendable, Hashable {
    /// One parameter; value nil where there is no "=", as in RED's `111/111`.
    public struct Parameter: Sendable, Hashable {
        public var name: String
        public var value: String?

        /// A parameter called `name`.
        public init(_ name: String, _ value: String? = nil) {
            self.name = name
            self.value = value
        }

        /// Whether the value of a parameter that a codec defines has the right form: a flag, a profile or a number. A publisher's parameters appear in the
        /// descriptions of all its subscribers, and a parser may refuse a whole description for one malformed flag.
        var isReadable: Bool {
            guard let text = value else { return false }
            switch name.lowercased() {
            case "stereo", "sprop-stereo", "cbr", "useinbandfec", "usedtx", "level-asymmetry-allowed", "tier":
                return text == "0" || text == "1"
            case "profile-level-id": return text.utf8.count == 6 && text.utf8.allSatisfy(\.isAlphanumeric)
            default: return (1...9).contains(text.utf8.count) && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
            }
        }
    }

    /// The parameters in the order of the line.
    public var parameters: [Parameter]

    /// No parameters, or these.
    public init(_ parameters: [Parameter] = []) { self.parameters = parameters }

    /// Parses the part of an fmtp line after the payload type, for example `minptime=10; useinbandfec=1`.
    public init(parsing text: String) {
        parameters = text.split(separator: ";").compactMap { part in
            let trimmed = part.trimmed
            guard !trimmed.isEmpty else { return nil }
            guard let equals = trimmed.firstIndex(of: "=") else { return Parameter(String(trimmed)) }
            let value = trimmed[trimmed.index(after: equals)...].trimmed
            return Parameter(String(trimmed[..<equals].trimmed), String(value))
        }
    }

    /// The value of the parameter called `name`; setting nil removes it, setting a new one appends it.
    public subscript(name: String) -> String? {
        get {
            let lowercased = name.lowercased()
            return parameters.first { $0.name.lowercased() == lowercased }?.value
        }
        set {
            let lowercased = name.lowercased()
            guard let index = parameters.firstIndex(where: { $0.name.lowercased() == lowercased }) else {
                if let newValue { parameters.append(Parameter(name, newValue)) }
                return
            }
            if let newValue { parameters[index].value = newValue } else { parameters.remove(at: index) }
        }
    }

    /// Whether there are none; then no line is written.
    public var isEmpty: Bool { parameters.isEmpty }

    /// As written after the payload type.
    public var text: String {
        parameters.map { $0.value == nil ? $0.name : "\($0.name)=\($0.value ?? "")" }.joined(separator: ";")
    }
}
