/// `a=rid` (RFC 8851): one encoding and its restrictions.
struct RID: Hashable {
    var id: String
    var direction: Direction
    /// `pt=`; nil if any payload type of the section may be used.
    var payloadTypes: [UInt8]?
    /// `max-width` and the like, unchanged.
    var restrictions: [FormatParameters.Parameter]

    /// `<id> send|recv [pt=1,2;max-width=…]`; nil for anything else, and for ids that no RTP header can carry.
    init?(parsing value: String) {
        let words = value.split(separator: " ", maxSplits: 2)
        guard words.count >= 2, Self.isValid(words[0]) else { return nil }
        switch words[1] {
        case "send": direction = .sendonly
        case "recv": direction = .recvonly
        default: return nil
        }
        id = String(words[0])
        let parameters = FormatParameters(parsing: words.count == 3 ? String(words[2]) : "")
        payloadTypes = parameters["pt"].map { $0.split(separator: ",").compactMap { UInt8($0.trimmed) } }
        restrictions = parameters.parameters.filter { $0.name != "pt" }
    }

    /// ALPHA / DIGIT / "-" / "_", at most 16: the longest value of a one-byte header extension (RFC 8285 section 4.2).
    static func isValid(_ id: Substring) -> Bool {
        (1...16).contains(id.utf8.count)
            && id.utf8.allSatisfy { $0.isAlphanumeric || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }
    }
}

/// `a=simulcast` (RFC 8853): streams by direction; of several alternatives of one stream the first counts.
struct Simulcast: Hashable {
    var send: [String] = []
    var recv: [String] = []
    /// Those of `send` that are paused (`~`).
    var paused: Set<String> = []

    /// `send q;~h;f,f2 recv …`
    init(parsing value: String) {
        let words = value.words
        var index = 0
        while index + 1 < words.count {
            let streams = words[index + 1].split(separator: ";").compactMap { $0.split(separator: ",").first }
            let ids = streams.map { String($0.hasPrefix("~") ? $0.dropFirst() : $0) }
            if words[index] == "send", send.isEmpty {
                send = ids
                paused = Set(zip(ids, streams).lazy.filter { $1.hasPrefix("~") }.map(\.0))
            }
            if words[index] == "recv", recv.isEmpty { recv = ids }
            index += 2
        }
    }
}
