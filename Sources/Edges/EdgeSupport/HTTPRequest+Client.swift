public import HTTPServing
import Primitives
import Rooms

extension HTTPRequest {
    /// What the client calls itself in `User-Agent`, cut to the length of a name; nil if it is no valid name.
    public var clientName: String? {
        guard let field = headers["User-Agent"] else { return nil }
        let name = String(String.UnicodeScalarView(field.unicodeScalars.prefix(TextRule.label.maximumLength)))
        return name.isEmpty || TextRule.label.fault(in: name) != nil ? nil : name
    }

    /// Throws the problem for which the listener would refuse a WebSocket of this client.
    public func checkWebSocket() throws(Problem) {
        guard let refusal = webSocketRefusal else { return }
        var problem = Problem(refusal)
        problem.retryAfter = .seconds(10)
        throw problem
    }
}
