import Primitives

/// One m-line of a connection as both sides know it after the last answer, or as a pending description would make it.
struct MediaLine: Sendable {
    var mid: String
    /// False where the remote's offer named none; then the answer names none either.
    var writesMid = true
    /// The word of the m-line; kept for kinds that are refused.
    var media: String
    var kind: SectionKind?
    var proto: String
    /// The remote's formats, which a rejected section repeats because it must name one.
    var formatWords: [String] = []
    /// The attributes of these formats in the rejected offer. Pion and webrtc-rs cannot read an answer that names a payload type without an rtpmap, whether the
    /// section is rejected or not.
    var formatLines: [DescriptionAttribute] = []
    var isRejected = false
    var refusal: SectionRefusal?
    /// The server created it; its use does not depend on what the remote offered.
    var isLocal = false
    /// The remote's last offer says that it receives here.
    var remoteReceives = false
    /// Whether the server receives here.
    var receives = false
    var sending: LocalSending?
    /// Tracks that were sent here. A client that knows a pair of mid and track ignores it the second time.
    private(set) var carried: [String] = []
    /// As written: payload types and parameters.
    var formats: [NegotiatedFormat] = []
    /// As written, in the server's direction.
    var extensions: [ExtensionMapping] = []
    /// Layers that the server receives, and whether they are in `a=simulcast`.
    var rids: [RID] = []
    var isSimulcast = false
    /// Layers that the client's last offer paused. The answer pauses them, too: otherwise libwebrtc turns them on, against its application's setting.
    var pausedRIDs: Set<String> = []
    var hasReducedSizeRTCP = false
    var allowsMixedExtensions = false
    var hasReceiverReferenceTime = false
    var maximumBitrate: Bitrate?

    init(mid: String, media: String, kind: SectionKind?, proto: String) {
        self.mid = mid
        self.media = media
        self.kind = kind
        self.proto = proto
    }

    /// The server's direction.
    var direction: Direction { Direction(sends: sending != nil, receives: receives) }

    /// The oldest are forgotten after 64 tracks on one section: more than a client remembers in practice.
    private static let maximumCarried = 64

    /// Whether `track` may be sent here without confusing the client.
    func mayCarry(_ track: String) -> Bool { !carried.contains(track) }

    /// Starts or continues sending.
    mutating func send(_ new: LocalSending) {
        sending = new
        guard !carried.contains(new.trackID) else { return }
        if carried.count == Self.maximumCarried { carried.removeFirst() }
        carried.append(new.trackID)
    }

    /// Takes over the remembered tracks from the previous state of this line.
    mutating func inherit(_ old: MediaLine) { carried = old.carried }

    /// Port 0, with everything about media discarded.
    mutating func reject(_ reason: SectionRefusal) {
        isRejected = true
        refusal = reason
        sending = nil
        receives = false
        remoteReceives = false
        formats = []
        rids = []
        pausedRIDs = []
    }
}

/// All m-lines of a connection and what they share.
struct Book: Sendable {
    var lines: [MediaLine] = []
    /// The remote end; nil before the first accepted description.
    var remote: TransportFacts?
    /// Credentials of the server's last description that the remote accepted or was given as an answer.
    var localICE: (ufrag: String, password: String)?
    var payloadTypes = PayloadTypeRegistry()
    var extensionIDs = ExtensionRegistry()
    /// The length of the remote's last offer.
    var offeredBytes = 0
    /// The number of the next mid that the server invents.
    var nextMid = 0

    /// Every mid that this connection has seen; a retired one never comes back with another meaning.
    var seenMids: Set<String> = []
    /// How many of them the server made.
    private(set) var inventedMids = 0

    /// A mid that no line has or had.
    mutating func inventMid() -> String {
        while true {
            let mid = String(nextMid)
            nextMid += 1
            guard seenMids.insert(mid).inserted else { continue }
            inventedMids += 1
            return mid
        }
    }
}

extension NegotiatedFormat {
    /// The format's parameters in a line of the server. They are those that both sides agree on or that describe the sent stream, and not those of the remote's
    /// own stream or decoder.
    func written(sends: Bool) -> FormatParameters {
        func keep(_ names: [String]) -> FormatParameters {
            FormatParameters(parameters.parameters.filter { names.contains($0.name.lowercased()) && $0.isReadable })
        }
        switch codec {
        case .opus:
            if sends { return keep(Self.opusReceiver + Self.opusSender) }
            var kept = keep(Self.opusReceiver)
            // The publisher announces that it will send stereo, which the server prefers to receive.
            if parameters["sprop-stereo"] == "1" { kept["stereo"] = "1" }
            return kept
        case .red: return parameters
        case .h264: return keep(["level-asymmetry-allowed", "packetization-mode", "profile-level-id"])
        case .vp9: return keep(["profile-id"])
        case .av1: return keep(["profile", "level-idx", "tier"])
        case .vp8, .g722, .pcmu, .pcma: return FormatParameters()
        }
    }

    /// Opus's parameters (RFC 7587 section 6.1), and `minptime`, which all browsers write: those of a receiver, and those of a sender.
    private static let opusReceiver = [
        "minptime", "ptime", "maxptime", "maxplaybackrate", "maxaveragebitrate", "stereo", "cbr", "useinbandfec",
        "usedtx",
    ]
    private static let opusSender = ["sprop-maxcapturerate", "sprop-stereo"]

    /// The format of a sender that sends stereo without having signalled it (RFC 7587 section 6.1); only Opus has a parameter for it.
    var sentInStereo: NegotiatedFormat {
        guard codec == .opus else { return self }
        var format = self
        format.parameters["sprop-stereo"] = "1"
        return format
    }

    /// The format of a receiver that would like its sender to use DTX (RFC 7587 section 6.1); only Opus has a parameter for it.
    var receivedWithDTX: NegotiatedFormat {
        guard codec == .opus else { return self }
        var format = self
        format.parameters["usedtx"] = "1"
        return format
    }

    /// The name in an rtpmap, with clock rate and channels.
    var encoding: String { "\(codec.rawValue)/\(clockRateHz)" + (channels > 1 ? "/\(channels)" : "") }
}
