/// What a capture's offer says about payload types and extensions: just enough to read the packets, by hand and not by
/// the product's own SDP module, so that a fault there does not hide one here.
struct OfferFacts {
    /// Payload type to codec name in lower case.
    var codecs: [UInt8: String] = [:]
    /// RTX payload type to the repeated one.
    var repeated: [UInt8: UInt8] = [:]
    /// Extension id to its short name, by kind of section.
    var extensions: [String: [UInt8: String]] = [:]
    /// Kind of section in which a payload type stands.
    var kinds: [UInt8: String] = [:]

    init(_ sdp: String) {
        var kind = "session"
        for line in sdp.split(whereSeparator: \.isNewline) {
            if line.hasPrefix("m=") {
                kind = String(line.dropFirst(2).prefix { $0 != " " })
            } else if line.hasPrefix("a=rtpmap:") {
                readCodec(line.dropFirst(9), kind)
            } else if line.hasPrefix("a=fmtp:"), line.contains("apt=") {
                readRepetition(line.dropFirst(7))
            } else if line.hasPrefix("a=extmap:") {
                readExtension(line.dropFirst(9), kind)
            }
        }
    }

    private mutating func readCodec(_ text: Substring, _ kind: String) {
        let fields = text.split(separator: " ")
        guard fields.count == 2, let type = UInt8(fields[0]) else { return }
        codecs[type] = fields[1].prefix { $0 != "/" }.lowercased()
        kinds[type] = kind
    }

    private mutating func readRepetition(_ text: Substring) {
        let fields = text.split(separator: " ")
        guard let type = UInt8(fields[0]), let value = fields[1].split(separator: "=").last else { return }
        repeated[type] = UInt8(value)
    }

    private mutating func readExtension(_ text: Substring, _ kind: String) {
        let fields = text.split(separator: " ")
        guard let id = UInt8(fields[0].prefix { $0 != "/" }) else { return }
        let name = fields[1].split { "/:#".contains($0) }.last ?? ""
        extensions[kind, default: [:]][id] = String(name)
    }
}
