import MediaControl
import Primitives
import TestSupport

@testable import Forwarding

/// The tracks that a captured client's offer describes, read with just enough of SDP for these offers.
func capturedTracks(_ name: String, namingSSRCs: Bool) throws -> [TrackDescription] {
    let offer = try ClientCaptures.offer(name)
    var sections: [[Substring]] = []
    for line in offer.split(whereSeparator: \.isNewline) {
        if line.hasPrefix("m=") { sections.append([]) }
        if !sections.isEmpty { sections[sections.count - 1].append(line) }
    }
    return sections.enumerated().compactMap { describeSection($0.element, index: $0.offset, namingSSRCs: namingSSRCs) }
}

private func values(_ lines: [Substring], _ prefix: String) -> [Substring] {
    lines.compactMap { $0.hasPrefix(prefix) ? $0.dropFirst(prefix.count) : nil }
}

private func describeSection(_ lines: [Substring], index: Int, namingSSRCs: Bool) -> TrackDescription? {
    let isAudio = lines[0].hasPrefix("m=audio")
    guard isAudio || lines[0].hasPrefix("m=video") else { return nil }
    var repairs: [UInt8: UInt8] = [:]
    for value in values(lines, "a=fmtp:") {
        let parts = value.split(separator: " ")
        if parts[1].hasPrefix("apt="), let apt = UInt8(parts[1].dropFirst(4)) { repairs[apt] = UInt8(parts[0]) }
    }
    let codecs: [String: Codec] = [
        "opus": .opus, "red": .red, "vp8": .vp8, "vp9": .vp9, "h264": .h264, "av1": .av1,
    ]
    let formats = values(lines, "a=rtpmap:").compactMap { value -> PayloadFormat? in
        let parts = value.split(whereSeparator: { $0 == " " || $0 == "/" })
        guard let type = UInt8(parts[0]), let codec = codecs[parts[1].lowercased()], let rate = UInt32(parts[2]),
            codec.kind == (isAudio ? .audio : .video)
        else { return nil }
        return PayloadFormat(codec: codec, payloadType: type, rtxPayloadType: repairs[type], clockRateHz: rate)
    }
    let rids = values(lines, "a=rid:").compactMap { $0.split(separator: " ").first.map(String.init) }
    let groups =
        namingSSRCs
        ? values(lines, "a=ssrc-group:FID ").map { $0.split(separator: " ").compactMap { UInt32($0) } } : []
    var encodings = rids.map { EncodingDescription(rid: $0) }
    if encodings.isEmpty { encodings = [EncodingDescription()] }
    for (index, group) in groups.enumerated() where index < encodings.count && group.count == 2 {
        encodings[index].ssrc = group[0]
        encodings[index].rtxSSRC = group[1]
    }
    return TrackDescription(
        id: TrackID(UInt64(index + 1)), peer: PeerID(1), kind: isAudio ? .audio : .video, source: .unknown,
        mid: values(lines, "a=mid:").first.map(String.init) ?? "\(index)", formats: formats, encodings: encodings,
        extensions: extensionIDs(lines), feedback: isAudio ? [.transportCC] : [.nack, .pli, .transportCC])
}

private func extensionIDs(_ lines: [Substring]) -> HeaderExtensionIDs {
    let names: [(String, HeaderExtension)] = [
        ("sdes:mid", .mid), ("sdes:rtp-stream-id", .rid), ("sdes:repaired-rtp-stream-id", .repairedRID),
        ("ssrc-audio-level", .audioLevel), ("abs-send-time", .absoluteSendTime),
        ("transport-wide-cc", .transportSequence),
        ("video-orientation", .videoOrientation), ("dependency-descriptor", .dependencyDescriptor),
        ("video-layers-allocation00", .videoLayersAllocation), ("playout-delay", .playoutDelay),
    ]
    var ids = HeaderExtensionIDs()
    for value in values(lines, "a=extmap:") {
        let parts = value.split(separator: " ")
        guard let id = UInt8(parts[0].split(separator: "/")[0]) else { continue }
        for (name, meaning) in names where parts[1].contains(name) { ids[meaning] = id }
    }
    return ids
}
