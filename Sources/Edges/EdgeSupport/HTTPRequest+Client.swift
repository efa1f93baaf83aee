public import HTTPServing
import Rooms

extension HTTPRequest {
    /// What the client calls itself in `User-Agent`, cut to the length of a name; nil where it is no name for people.
    public var clientName: String? {
        guard let field = headers["User-Agent"] else { return nil }
        let name = String(String.UnicodeScalarView(field.unicodeScalars.prefix(TextRule.label.maximumLength)))
        return name.isEmpty || TextRule.label.fault(in: name) != nil ? nil : name
    }
}
