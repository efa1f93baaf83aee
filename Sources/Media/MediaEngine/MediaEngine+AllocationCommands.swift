import Forwarding
public import MediaControl
public import Primitives

// What viewers, publishers and operators say of bandwidth, and what they are told of it.

extension MediaEngine {
    func setPolicy(_ policy: DownlinkPolicy, of id: PeerID, at now: MonotonicTime) -> Bool {
        guard let index = tables.peerIndex[id.rawValue], let downlink = tables.peers[index].pointee.downlink else {
            return false
        }
        let isOtherCount = policy.maximumVideos != downlink.pointee.allocation.policy.maximumVideos
        downlink.pointee.allocation.policy = policy
        scheduleAllocation(of: index, at: now)
        guard isOtherCount else { return true }
        // What is not sent yet begins in another way.
        for state in tables.subscriptions(ofPeer: index) { state.pointee.picture.hasDecision = false }
        return true
    }

    func setTraits(_ traits: TrackTraits, of id: TrackID, at now: MonotonicTime) -> Bool {
        guard let index = tables.trackIndex[id.rawValue] else { return false }
        tables.tracks[index].pointee.traits = traits
        for state in tables.subscriptions(ofTrack: index) { scheduleAllocation(of: state.pointee.peer, at: now) }
        return true
    }

    func setWish(_ wish: ViewerWish, of id: SubscriptionID, at now: MonotonicTime) -> Bool {
        guard let index = tables.subscriptionIndex[id.rawValue] else { return false }
        tables.subscriptions[index].pointee.picture.wish = wish
        scheduleAllocation(of: tables.subscriptions[index].pointee.peer, at: now)
        demandChanged(by: index, at: now)
        return true
    }

    /// Another speaker dominates the room: its viewers' pictures are looked at at once.
    func dominantChanged(in room: Int, to track: TrackID?, at now: MonotonicTime) {
        let owner = track.flatMap { tables.trackIndex[$0.rawValue] }.map { tables.tracks[$0].pointee.peer } ?? -1
        guard tables.rooms[room].pointee.dominantPeer != owner else { return }
        tables.rooms[room].pointee.dominantPeer = owner
        for index in 0..<tables.peers.end where tables.peers.contains(index) && tables.peers[index].pointee.room == room
        {
            guard let downlink = tables.peers[index].pointee.downlink else { continue }
            if downlink.pointee.condition(at: now).certainty != .unknown
                || downlink.pointee.allocation.policy.maximumVideos != nil
            {
                scheduleAllocation(of: index, at: now)
            }
        }
    }

    /// What holds now for each picture of a peer, and what for all together; nil for a peer that is not here or receives nothing.
    public func downlinkReport(of id: PeerID) -> DownlinkReport? {
        guard let index = tables.peerIndex[id.rawValue], let downlink = tables.peers[index].pointee.downlink else {
            return nil
        }
        var report = DownlinkReport()
        let condition = downlink.pointee.condition(at: clock)
        report.estimate = condition.isMeasured ? condition.estimate : nil
        report.allocated = downlink.pointee.allocation.allocated
        report.wanted = downlink.pointee.allocation.wanted
        for state in tables.subscriptions(ofPeer: index) {
            guard state.pointee.track >= 0, var record = state.pointee.picture.latest else { continue }
            record.age = clock - record.time
            report.pictures.append(record)
        }
        report.pictures.sort { $0.subscription < $1.subscription }
        return report
    }

    /// The last decisions about the pictures of a peer and the estimates of its path; nil for a peer that is not here or receives nothing.
    public func decisions(of id: PeerID) -> DecisionHistory? {
        guard let index = tables.peerIndex[id.rawValue], let downlink = tables.peers[index].pointee.downlink else {
            return nil
        }
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
