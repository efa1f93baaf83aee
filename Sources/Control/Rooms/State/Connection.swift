import MediaControl
import Primitives
import SDP

/// One peer connection of a member, from the control plane's point of view.
struct Connection: Sendable {
    /// The client's name for it, or the server's ("sub").
    let id: String
    let peer: PeerID
    let feedbackSSRC: UInt32
    var negotiation: Negotiation
    /// The server's credentials now.
    var ice: ICECredentials
    /// The other side, as the worker was last commanded.
    var remote: RemoteTransport?
    /// The client's candidates that came by themselves, over its socket.
    var trickled = CandidateSummary()
    /// The worker was commanded to add the peer.
    var isOpened = false
    var state = ConnectionState.connecting
    /// When it was opened, or its ICE restarted.
    var connectingSince = MonotonicTime.zero
    /// How its bandwidth is shared out, as the worker was last commanded.
    var downlinkPolicy = DownlinkPolicy()
    /// Its data section is accepted.
    var hasData = false
    /// Labels of its open data channels.
    var channels: Set<String> = []
    /// What is sent has changed since the last description.
    var needsOffer = false
    /// Sections that a client which makes all offers itself was last asked for, since its last offer.
    var requestedSections: SectionNeed?
    /// The track that comes in on each section.
    var trackByMid: [String: TrackID] = [:]
    /// The subscription that goes out, or is offered to go out, on each section.
    var subscriptionByMid: [String: SubscriptionID] = [:]
}

/// How many receiving sections a connection lacks.
struct SectionNeed: Sendable, Hashable {
    var audio = 0
    var video = 0
}
