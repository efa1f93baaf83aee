import Forwarding
import MediaControl
import Primitives

// What the allocation is asked: the path, the rules, and each picture with its layers and wishes.

extension MediaEngine {
    /// What the path carries; the start value where feedback is agreed and nothing has left yet, nil where nothing limits.
    func pathEstimate(of downlink: UnsafeMutablePointer<Downlink>, at now: MonotonicTime) -> Bitrate? {
        guard downlink.pointee.condition(at: now).certainty == .unknown else {
            return downlink.pointee.estimate(at: now)
        }
        let promisesFeedback = requestedBy.contains {
            tables.subscriptions[$0].pointee.subscription.usesTransportSequence
                && tables.subscriptions[$0].pointee.subscription.promisesTransportFeedback
        }
        guard promisesFeedback else { return nil }
        downlink.pointee.expectFeedback()
        return downlink.pointee.estimate(at: now)
    }

    func rules(
        of downlink: UnsafeMutablePointer<Downlink>, estimate: Bitrate?, sound: Double
    ) -> AllocationRules {
        let policy = downlink.pointee.allocation.policy
        let condition = downlink.pointee.condition(at: clock)
        let budget = estimate.map { max(Double($0.bitsPerSecond) - sound, 0) / Self.overhead } ?? 1e12
        return AllocationRules(
            mode: policy.mode,
            shortage: condition.certainty == .guessed ? .oversend(.bitsPerSecond(1 << 40)) : policy.shortage,
            maximumVideos: policy.maximumVideos,
            estimate: .bitsPerSecond(Int64(budget)), cap: policy.maximumBitrate,
            isCongested: condition.isCongested)
    }

    /// Fills `requests` and `requestedBy` with the peer's pictures in order of their ids; what its sound takes on the wire.
    func collectRequests(of downlink: UnsafeMutablePointer<Downlink>, at now: MonotonicTime) -> Double {
        requestedBy.removeAll(keepingCapacity: true)
        var sound = 0.0
        for state in downlink.pointee.subscriptions(in: tables.subscriptions.base) {
            if state.pointee.subscription.kind == .audio {
                // 50 packets a second of 50 bytes' headers.
                let rate = Double(state.pointee.subscription.bitrate(at: now).bitsPerSecond)
                if rate > 0 { sound += rate + 14_000 }
            } else if state.pointee.track >= 0 {
                requestedBy.append(tables.subscriptions.index(of: state))
            }
        }
        requestedBy.sort {
            tables.subscriptions[$0].pointee.subscription.id < tables.subscriptions[$1].pointee.subscription.id
        }
        let condition = downlink.pointee.condition(at: now)
        for index in requestedBy {
            requests.append(request(of: tables.subscriptions[index], over: condition, at: now))
        }
        return sound
    }

    func request(
        of state: UnsafeMutablePointer<SubscriptionState>, over path: PathCondition, at now: MonotonicTime
    ) -> AllocationRequest {
        let owner = tables.tracks[state.pointee.track]
        let track = owner.pointee.track
        let isScreen = track.description.source == .screen
        if let moment = path.wrongFall { state.pointee.picture.forgive(moment) }
        let picture = state.pointee.picture
        var request = AllocationRequest(
            id: state.pointee.subscription.id, offers: [], isScreen: isScreen)
        track.appendOffers(at: now, to: &request.offers)
        if let current = picture.layer {
            for index in request.offers.indices
            where request.offers[index].spatial == current.spatial && request.offers[index].temporal == current.temporal
            {
                request.offers[index].bitrate = picture.cost(request.offers[index].bitrate, at: now)
            }
        }
        request.limits = state.pointee.subscription.limits(of: track)
        request.limits.framesPerSecond = picture.wish.framesPerSecond
        request.hint = owner.pointee.traits.hint ?? (isScreen ? .detail : .motion)
        request.publisherPriority = owner.pointee.traits.priority
        request.viewerPriority = picture.wish.priority
        request.isPinned = picture.wish.isPinned
        request.isDominant =
            tables.rooms[tables.peers[owner.pointee.peer].pointee.room].pointee.dominantPeer == owner.pointee.peer
        request.current = picture.layer
        request.mayRise = picture.mayRise(on: path.estimate, at: now)
        request.isDraining = picture.isDraining(at: now)
        // A receiver's own estimate (REMB) knows nothing of the keyframe's queue.
        request.isYoung = path.certainty == .settled && picture.isYoung(at: now)
        request.failed = picture.failedStep(on: path.estimate, at: now)
        if state.pointee.subscription.isPaused {
            request.blocked = .paused
        } else if picture.wish.isHidden {
            request.blocked = .hidden
        } else if track.isMuted {
            request.blocked = .notSent
        }
        return request
    }
}
