/// A path whose parts may be parameters: "/whip/{room}".
struct PathPattern: Sendable, Hashable {
    private let parts: [String]

    init(_ pattern: String) {
        precondition(pattern.hasPrefix("/"), "a route's pattern begins with a slash")
        let split = pattern.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        parts = split == [""] ? [] : split
    }

    /// The parameters of a path that matches; nil if it does not. A parameter is never empty.
    func match(_ segments: [String]) -> [String: String]? {
        guard parts.count == segments.count else { return nil }
        var parameters: [String: String] = [:]
        for (part, segment) in zip(parts, segments) {
            if Self.isParameter(part) {
                guard !segment.isEmpty else { return nil }
                parameters[String(part.dropFirst().dropLast())] = segment
            } else if part != segment {
                return nil
            }
        }
        return parameters
    }

    /// Whether this pattern has a literal part where the other has a parameter, at the first place where they differ in this.
    func isMoreSpecific(than other: PathPattern) -> Bool {
        for (mine, others) in zip(parts, other.parts) where Self.isParameter(mine) != Self.isParameter(others) {
            return Self.isParameter(others)
        }
        return false
    }

    private static func isParameter(_ part: String) -> Bool { part.hasPrefix("{") && part.hasSuffix("}") }
}
