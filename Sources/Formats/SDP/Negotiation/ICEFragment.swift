/// A part of a description that carries only ICE information: `application/trickle-ice-sdpfrag` (RFC 8840 section 9), as
/// WHIP sends it to trickle candidates and to restart ICE (RFC 9725 section 4.3).
public struct ICEFragment: Sendable, Hashable {
    /// A candidate and the mid that it is listed under; with a bundled transport the mid is a formality.
    public struct Entry: Sendable, Hashable {
        /// nil before the first m-line.
        public var mid: String?
        /// The candidate.
        public var candidate: Candidate

        /// An entry.
        public init(mid: String? = nil, candidate: Candidate) {
            self.mid = mid
            self.candidate = candidate
        }
    }

    /// The sender's fragment; the first in the text.
    public var ufrag: String?
    /// The sender's password.
    public var password: String?
    /// Well-formed candidates; malformed ones are left out.
    public var candidates: [Entry] = []
    /// The fragment contains `a=end-of-candidates`.
    public var endOfCandidates = false

    /// An empty fragment.
    public init() {}

    /// Parses a fragment. Lines other than attributes and m-lines are skipped.
    public init(parsing text: String, limits: SDPLimits = SDPLimits()) throws(NegotiationError) {
        guard text.utf8.count <= limits.maximumBytes else { throw NegotiationError(.tooLong) }
        var reader = LineReader(bytes: Array(text.utf8), limits: limits)
        var mid: String?
        while let line = try reader.next() {
            if line.letter == UInt8(ascii: "m") { mid = nil }
            guard line.letter == UInt8(ascii: "a") else { continue }
            let attribute = DescriptionAttribute(parsing: line.value)
            switch attribute.name {
            case "mid": mid = attribute.value.flatMap { SectionReading.isValid(mid: $0) ? $0 : nil }
            case "ice-ufrag": ufrag = ufrag ?? attribute.value
            case "ice-pwd": password = password ?? attribute.value
            case "end-of-candidates": endOfCandidates = true
            case "candidate" where candidates.count < TransportReading.maximumCandidates:
                if let candidate = Candidate(parsing: line.value) {
                    candidates.append(Entry(mid: mid, candidate: candidate))
                }
            default: continue
            }
        }
    }
}

/// What a fragment changed.
public struct FragmentOutcome: Sendable, Hashable {
    /// The fragment as received.
    public var fragment: ICEFragment
    /// The remote has new credentials: call `restartICE`, then answer with `makeFragment()`.
    public var iceRestarted: Bool
    /// The remote end after the fragment.
    public var transport: TransportFacts
}

extension Negotiation {
    /// Processes a trickled fragment of a negotiated connection. A candidate by itself changes nothing that an ICE-lite server needs; new credentials are an
    /// ICE restart.
    public mutating func receiveFragment(_ text: String) throws(NegotiationError) -> FragmentOutcome {
        guard case .none = pending else { throw NegotiationError(.offerPending) }
        guard var remote = book.remote else { throw NegotiationError(.noPendingOffer) }
        let fragment = try ICEFragment(parsing: text, limits: policy.limits)
        var restarted = false
        if let ufrag = fragment.ufrag, ufrag != remote.iceUfrag {
            var reading = TransportReading([], session: [])
            (reading.iceUfrag, reading.icePassword) = (ufrag, fragment.password)
            (remote.iceUfrag, remote.icePassword) = try reading.credentials(at: .session)
            restarted = true
        }
        if restarted { remote.candidates = [] }
        let room = max(0, TransportReading.maximumCandidates - remote.candidates.count)
        remote.candidates += fragment.candidates.map(\.candidate).filter { $0.component == 1 }.prefix(room)
        remote.endOfCandidates = fragment.endOfCandidates
        book.remote = remote
        return FragmentOutcome(fragment: fragment, iceRestarted: restarted, transport: remote)
    }

    /// The server's new credentials and all its candidates, as the answer to a fragment that restarted ICE.
    public mutating func makeFragment() throws(NegotiationError) -> String {
        if let old = book.localICE, old.ufrag == transport.iceUfrag {
            throw NegotiationError(.newICECredentialsRequired)
        }
        book.localICE = (transport.iceUfrag, transport.icePassword)
        var text = DescriptionText()
        let accepted = book.lines.filter { !$0.isRejected }
        text.append([
            DescriptionAttribute("ice-lite"), DescriptionAttribute("ice-options", "trickle"),
            DescriptionAttribute("group", (["BUNDLE"] + accepted.map(\.mid)).spaced),
        ])
        if let tagged = accepted.first {
            text.append("m", "\(tagged.media) 9 \(tagged.proto) 0")
            text.append([DescriptionAttribute("mid", tagged.mid)])
        }
        text.append([
            DescriptionAttribute("ice-ufrag", transport.iceUfrag),
            DescriptionAttribute("ice-pwd", transport.icePassword),
        ])
        text.append(transport.candidates.map(\.attribute) + [DescriptionAttribute("end-of-candidates")])
        return text.text
    }
}
