/// The RTP formats of one section: rtpmap, fmtp and rtcp-fb lines combined, in the order of the m-line.
struct FormatTable: Hashable {
    /// One payload type.
    struct Entry: Hashable {
        var payloadType: UInt8
        /// Lower case.
        var name: String
        var clockRateHz: UInt32
        var channels: Int
        var parameters = FormatParameters()
        var feedback: FeedbackSet = []
    }

    private(set) var entries: [Entry] = []
    /// The section may list codecs that its client cannot send. Pion and webrtc-rs offer all that they know, whatever codec the track uses, and send nothing if
    /// the answer lacks that one. Only they write a space after an `a=rtcp-fb` without a parameter.
    private(set) var mayExceedTrack = false

    init() {}

    init(_ section: DescriptionSection, kind: SectionKind) {
        for word in section.formats {
            // 64 to 95 would read as RTCP on a multiplexed port (RFC 5761 section 4).
            guard let payloadType = UInt8(word), payloadType < 128, !(64...95).contains(payloadType),
                index(of: payloadType) == nil
            else { continue }
            entries.append(Self.staticEntry(payloadType))
        }
        for attribute in section.attributes {
            guard let value = attribute.value else { continue }
            switch attribute.name {
            case "rtpmap": readMap(value)
            case "fmtp": readParameters(value)
            case "rtcp-fb": readFeedback(value)
            default: continue
            }
        }
    }

    private func index(of payloadType: UInt8) -> Int? { entries.firstIndex { $0.payloadType == payloadType } }

    /// Payload types that need no rtpmap (RFC 3551 section 6).
    private static func staticEntry(_ payloadType: UInt8) -> Entry {
        let name =
            switch payloadType {
            case 0: "pcmu"
            case 8: "pcma"
            case 9: "g722"
            default: ""
            }
        return Entry(payloadType: payloadType, name: name, clockRateHz: 8000, channels: 1)
    }

    /// `<pt> <name>/<clock>[/<channels>]`
    private mutating func readMap(_ value: String) {
        let words = value.words
        guard words.count >= 2, let payloadType = UInt8(words[0]), let index = index(of: payloadType) else { return }
        let parts = words[1].split(separator: "/")
        guard parts.count >= 2, let clock = UInt32(parts[1]) else { return }
        entries[index].name = parts[0].lowercased()
        entries[index].clockRateHz = clock
        entries[index].channels = parts.count > 2 ? UInt8(parts[2]).map(Int.init) ?? 1 : 1
    }

    private mutating func readParameters(_ value: String) {
        let parts = value.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, let payloadType = UInt8(parts[0]), let index = index(of: payloadType) else { return }
        entries[index].parameters = FormatParameters(parsing: String(parts[1]))
    }

    /// `<pt>|* <what>`
    private mutating func readFeedback(_ value: String) {
        let words = value.words
        guard words.count >= 2 else { return }
        if value.hasSuffix(" ") { mayExceedTrack = true }
        let feedback = FeedbackSet(wire: words.dropFirst().joined(separator: " "))
        if words[0] == "*" {
            for index in entries.indices { entries[index].feedback.formUnion(feedback) }
        } else if let payloadType = UInt8(words[0]), let index = index(of: payloadType) {
            entries[index].feedback.formUnion(feedback)
        }
    }

    /// The retransmission format whose `apt` is `payloadType` (RFC 4588 section 8.6).
    func retransmission(of payloadType: UInt8) -> UInt8? {
        entries.first { $0.name == "rtx" && $0.parameters["apt"].flatMap { UInt8($0) } == payloadType }?.payloadType
    }

    /// Whether a `red` entry wraps Opus: `111/111`, or no parameters and there is Opus (RFC 2198 section 5).
    func wrapsOpus(_ entry: Entry) -> Bool {
        func isOpus(_ payloadType: UInt8) -> Bool { index(of: payloadType).map { entries[$0].name == "opus" } ?? false }
        guard let first = entry.parameters.parameters.first?.name else { return entries.contains { $0.name == "opus" } }
        return first.split(separator: "/").allSatisfy { UInt8($0).map(isOpus) ?? false }
    }
}
