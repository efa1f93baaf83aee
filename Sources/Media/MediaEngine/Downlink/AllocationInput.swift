import Forwarding
import MediaControl
import Primitives

/// The input of one peer's allocation: its videos with their layers and preferences, and its audio.
struct AllocationInput {
    /// The videos in order of their ids, so that equal states give equal decisions …
    private(set) var requests: [AllocationRequest] = []
    /// … and their subscriptions.
    private(set) var subscriptions: [Int] = []
    /// The bitrate of its audio on the wire, in bits per second.
    private(set) var audioBitsPerSecond = 0.0

    /// Headers of audio on the wire: 50 packets per second (20 ms of Opus) with some 35 bytes each.
    private static let audioHeaders = 14_000.0

    /// Collects the input from the subscriptions of one peer.
    init(
        _ chain: SubscriptionChain, _ tables: borrowing Tables, over path: PathCondition, at now: MonotonicTime
    ) {
        for state in chain {
            if state.pointee.subscription.kind == .audio {
                let rate = Double(state.pointee.subscription.bitrate(at: now).bitsPerSecond)
                if rate > 0 { audioBitsPerSecond += rate + Self.audioHeaders }
            } else if state.pointee.track >= 0 {
                subscriptions.append(tables.subscriptions.index(of: state))
            }
        }
        let base = tables.subscriptions.base
        subscriptions.sort { base[$0].subscription.id < base[$1].subscription.id }
        requests.reserveCapacity(subscriptions.count)
        for index in subscriptions { requests.append(Self.request(base + index, tables, over: path, at: now)) }
    }

    private static func request(
        _ state: UnsafeMutablePointer<SubscriptionState>, _ tables: borrowing Tables, over path: PathCondition,
        at now: MonotonicTime
    ) -> AllocationRequest {
        let owner = tables.tracks[state.pointee.track]
        let track = owner.pointee.track
        let isScreen = track.description.source == .screen
        var request = AllocationRequest(id: state.pointee.subscription.id, offers: [], isScreen: isScreen)
        track.appendOffers(at: now, to: &request.offers)
        request.limits = state.pointee.subscription.limits(of: track)
        request.hint = owner.pointee.traits.hint ?? (isScreen ? .detail : .motion)
        request.publisherPriority = owner.pointee.traits.priority
        let room = tables.rooms[tables.peers[owner.pointee.peer].pointee.room]
        request.isDominant = room.pointee.dominantPeer == owner.pointee.peer
        state.pointee.allocation.fill(&request, over: path, at: now)
        if state.pointee.subscription.isPaused {
            request.blocked = .paused
        } else if state.pointee.allocation.display.isHidden {
            request.blocked = .hidden
        } else if track.isMuted {
            request.blocked = .notSent
        }
        return request
    }

    /// Whether one of the subscribed videos negotiated transport-wide feedback.
    func expectsFeedback(_ tables: borrowing Tables) -> Bool {
        let base = tables.subscriptions.base
        return subscriptions.contains {
            base[$0].subscription.usesTransportSequence && base[$0].subscription.promisesTransportFeedback
        }
    }
}
