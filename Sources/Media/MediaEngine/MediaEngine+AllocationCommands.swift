import Forwarding
public import MediaControl
public import Primitives

// What viewers, publishers and operators say of bandwidth, and what they are told of it.

extension MediaEngine {
    func setPolicy(_ policy: DownlinkPolicy, of id: PeerID, at now: MonotonicTime) -> Bool {
        guard let index = peerIndex[id.rawValue], let downlink = peers[index].pointee.downlink else { return false }
        let isOtherCount = policy.maximumVideos != downlink.pointee.allocation.policy.maximumVideos
        downlink.pointee.allocation.policy = policy
        scheduleAllocation(of: index, at: now)
        guard isOtherCount else { return true }
        // What is not sent yet begins in another way.
        var next = downlink.pointee.firstSubscription
        while next >= 0 {
            subscriptions[next].pointee.picture.hasDecision = false
            next = subscriptions[next].pointee.nextOfPeer
        }
        return true
    }

    func setTraits(_ traits: TrackTraits, of id: TrackID, at now: MonotonicTime) -> Bool {
        guard let index = trackIndex[id.rawValue] else { return false }
        tracks[index].pointee.traits = traits
        forEachSubscription(of: index) { self.scheduleAllocation(of: $0.pointee.peer, at: now) }
        return true
    }

    func setWish(_ wish: ViewerWish, of id: SubscriptionID, at now: MonotonicTime) -> Bool {
        guard let index = subscriptionIndex[id.rawValue] else { return false }
        subscriptions[index].pointee.picture.wish = wish
        scheduleAllocation(of: subscriptions[index].pointee.peer, at: now)
        demandChanged(by: index, at: now)
        return true
    }

    /// Another speaker dominates the room: its viewers' pictures are looked at at once.
    func dominantChanged(in room: Int, to track: TrackID?, at now: MonotonicTime) {
        let owner = track.flatMap { trackIndex[$0.rawValue] }.map { tracks[$0].pointee.peer } ?? -1
        guard rooms[room].pointee.dominantPeer != owner else { return }
        rooms[room].pointee.dominantPeer = owner
        for index in 0..<peers.end where peers.contains(index) && peers[index].pointee.room == room {
            guard let downlink = peers[index].pointee.downlink else { continue }
            if downlink.pointee.control != nil || downlink.pointee.allocation.policy.maximumVideos != nil {
                scheduleAllocation(of: index, at: now)
            }
        }
    }

    /// What holds now for each picture of a peer, and what for all together; nil for a peer that is not here or receives nothing.
    public func downlinkReport(of id: PeerID) -> DownlinkReport? {
        guard let index = peerIndex[id.rawValue], let downlink = peers[index].pointee.downlink else { return nil }
        var report = DownlinkReport()
        if let control = downlink.pointee.control, control.pointee.isEstablished(at: clock) {
            report.estimate = control.pointee.estimate(at: clock)
        }
        report.allocated = downlink.pointee.allocation.allocated
        report.wanted = downlink.pointee.allocation.wanted
        var next = downlink.pointee.firstSubscription
        while next >= 0 {
            if subscriptions[next].pointee.track >= 0, var record = subscriptions[next].pointee.picture.latest {
                record.age = clock - record.time
                report.pictures.append(record)
            }
            next = subscriptions[next].pointee.nextOfPeer
        }
        report.pictures.sort { $0.subscription < $1.subscription }
        return report
    }

    /// The last decisions about the pictures of a peer and the estimates of its path; nil for a peer that is not here or receives nothing.
    public func decisions(of id: PeerID) -> DecisionHistory? {
        guard let index = peerIndex[id.rawValue], let downlink = peers[index].pointee.downlink else { return nil }
        let now = clock
        var history = DecisionHistory()
        history.decisions = downlink.pointee.allocation.decisions.all.map { record in
            var record = record
            record.age = now - record.time
            return record
        }
        history.estimates = downlink.pointee.allocation.estimates.records(at: now)
        return history
    }
}
