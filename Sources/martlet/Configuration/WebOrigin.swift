/// An origin as browsers send it in the `Origin` field (RFC 6454 section 6.2): anything written differently never matches one.
enum WebOrigin {
    /// The origin that `text` means; nil if it means none.
    static func canonical(_ text: String) -> String? {
        guard let colon = text.firstRange(of: "://") else { return nil }
        let scheme = text[..<colon.lowerBound].lowercased()
        var host = text[colon.upperBound...].lowercased()
        if host.hasSuffix("/") { host.removeLast() }
        for (name, port) in [("https", ":443"), ("http", ":80")] where scheme == name && host.hasSuffix(port) {
            host.removeLast(port.count)
        }
        let isScheme = scheme.utf8.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                || "+-.".utf8.contains(byte)
        }
        // Whatever a host may contain, these characters end it.
        let isHost = !host.isEmpty && !host.contains { "/?#@,*".contains($0) || $0.isWhitespace }
        return isScheme && scheme.first?.isLetter == true && isHost ? "\(scheme)://\(host)" : nil
    }

    /// One element of `http.allowed_origins`.
    static func element(_ node: YAMLDocument.Node) throws(SettingError) -> String {
        let text = try node.text(form)
        if text == "*" { return text }
        guard let canonical = canonical(text) else {
            let hint = self.canonical("https://\(text)").map { "; did you mean '\($0)'?" } ?? "; expected \(form)"
            throw SettingError(problem: "'\(text)' is not an origin\(hint)", line: node.line)
        }
        guard canonical == text else {
            throw SettingError(problem: "'\(text)' is not what browsers send; write '\(canonical)'", line: node.line)
        }
        return text
    }

    static let form = "https://HOST or https://HOST:PORT, or * for any"
}
