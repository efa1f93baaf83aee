/// Where an OpenTelemetry collector takes traces: an absolute http or https URL, to which `/v1/traces` is appended.
enum CollectorAddress {
    static func isGood(_ text: String) -> Bool {
        guard let scheme = ["http://", "https://"].first(where: { text.hasPrefix($0) }) else { return false }
        let rest = text.dropFirst(scheme.count)
        // A query or a fragment would stand before what is appended.
        return !rest.isEmpty && !rest.hasPrefix("/") && text.utf8.count <= 2_048
            && rest.utf8.allSatisfy { 0x21...0x7e ~= $0 && !"?#@".utf8.contains($0) }
    }
}
