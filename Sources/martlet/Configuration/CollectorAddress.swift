/// The address at which an OpenTelemetry collector receives traces: an absolute http or https URL, to which `/v1/traces` is appended.
enum CollectorAddress {
    static func isGood(_ text: String) -> Bool {
        guard let scheme = ["http://", "https://"].first(where: { text.hasPrefix($0) }) else { return false }
        let rest = text.dropFirst(scheme.count)
        // `/v1/traces` would be appended to a query or a fragment.
        return !rest.isEmpty && !rest.hasPrefix("/") && text.utf8.count <= 2_048
            && rest.utf8.allSatisfy { 0x21...0x7e ~= $0 && !"?#@".utf8.contains($0) }
    }
}
