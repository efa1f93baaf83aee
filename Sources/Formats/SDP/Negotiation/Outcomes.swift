public import Primitives

/// What the caller decides about one section of an offer. The default: receive what is offered, send nothing.
public struct SectionAnswer: Sendable, Hashable {
    /// What to send on it, if the remote receives.
    public var sending: LocalSending?
    /// False: nothing is received from the remote on this section, as the answer states.
    public var receives = true
    /// True: port 0.
    public var rejects = false
    /// Allowed codecs in order of preference, instead of the policy's.
    public var codecs: [CodecName]?
    /// Cap for what the remote sends, as `b=AS` and `b=TIAS`.
    public var maximumBitrate: Bitrate?
    /// True: the remote sends stereo although its offer may not signal it; the answer requests stereo, as for an offer that does (RFC 7587).
    public var takesStereo = false
    /// True: the answer requests DTX (RFC 7587 section 6.1) from the remote, so that it sends less in silence; its offer does not mention that.
    public var asksForDTX = false

    /// An answer that sends `sending`.
    public init(sending: LocalSending? = nil) { self.sending = sending }
}

/// An answer to send to the remote, and what applies from now on.
public struct AnswerOutcome: Sendable, Hashable {
    public var text: String
    public var sections: [NegotiatedSection]
}

/// An offer to send to the remote.
public struct LocalOffer: Sendable, Hashable {
    public var text: String
    /// The mid of each thing to send, in the order of the argument.
    public var mids: [String]
}

/// What the remote's answer accepted.
public struct AcceptedAnswer: Sendable, Hashable {
    public var sections: [NegotiatedSection]
    public var transport: TransportFacts?
    /// The remote's credentials changed.
    public var iceRestarted: Bool
}

/// The state of offer and answer (RFC 3264, RFC 9429 section 3.2).
public enum NegotiationState: Sendable, Hashable {
    /// No offer waits.
    case stable
    /// The server's offer waits for the remote's answer.
    case haveLocalOffer
    /// The remote's offer waits for the server's answer.
    case haveRemoteOffer
}
