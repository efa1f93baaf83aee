import Forwarding
public import MediaControl
import PeerTransport
public import Primitives

// How each peer's bandwidth is divided: when its downlink is evaluated, how its decisions are applied, and how they are reported.

extension MediaEngine {
    /// Schedules an evaluation of the peer's videos soon after `moment`.
    func scheduleAllocation(of peer: Int, at moment: MonotonicTime) {
        if tables.peers[peer].pointee.downlink?.pointee.look(at: moment) == true { touch(peer) }
    }

    /// Divides the peer's bandwidth, if it is time to.
    func allocate(_ index: Int, at now: MonotonicTime) {
        guard let downlink = tables.peers[index].pointee.downlink else { return }
        let mayReceive = tables.peers[index].pointee.transport.mayReceive
        for change in downlink.pointee.decide(tables, mayReceive: mayReceive, at: now) {
            if change.changesDemand { demandChanged(by: change.subscription, at: now) }
            if change.needsStart { askForStart(change.subscription, at: now) }
        }
    }

    func setPolicy(_ policy: DownlinkPolicy, of id: PeerID, at now: MonotonicTime) -> Bool {
        guard let index = tables.peerIndex[id.rawValue], let downlink = tables.peers[index].pointee.downlink else {
            return false
        }
        downlink.pointee.setPolicy(policy, in: tables.subscriptions.base)
        scheduleAllocation(of: index, at: now)
        return true
    }

    func setTraits(_ traits: TrackTraits, of id: TrackID, at now: MonotonicTime) -> Bool {
        guard let index = tables.trackIndex[id.rawValue] else { return false }
        tables.tracks[index].pointee.traits = traits
        for state in tables.subscriptions(ofTrack: index) { scheduleAllocation(of: state.pointee.peer, at: now) }
        return true
    }

    func setDisplay(_ display: DisplayPreference, of id: SubscriptionID, at now: MonotonicTime) -> Bool {
        guard let index = tables.subscriptionIndex[id.rawValue] else { return false }
        tables.subscriptions[index].pointee.allocation.setDisplay(display)
        scheduleAllocation(of: tables.subscriptions[index].pointee.peer, at: now)
        demandChanged(by: index, at: now)
        return true
    }

    /// The room's dominant speaker changed: its subscribers' videos are evaluated at once.
    func dominantChanged(in room: Int, to track: TrackID?, at now: MonotonicTime) {
        let owner = track.flatMap { tables.trackIndex[$0.rawValue] }.map { tables.tracks[$0].pointee.peer } ?? -1
        guard tables.rooms[room].pointee.dominantPeer != owner else { return }
        tables.rooms[room].pointee.dominantPeer = owner
        for index in 0..<tables.peers.end where tables.peers.contains(index) && tables.peers[index].pointee.room == room
        {
            guard let downlink = tables.peers[index].pointee.downlink else { continue }
            if downlink.pointee.condition(at: now).certainty != .unknown
                || downlink.pointee.allocator.policy.maximumVideos != nil
            {
                scheduleAllocation(of: index, at: now)
            }
        }
    }

    /// The current state of each video of a peer, and of all together; nil for an unknown or publish-only peer.
    public func downlinkReport(of id: PeerID) -> DownlinkReport? {
        guard let index = tables.peerIndex[id.rawValue] else { return nil }
        return tables.peers[index].pointee.downlink?.pointee.report(in: tables.subscriptions.base, at: clock)
    }

    /// The last decisions about a peer's videos and the estimates of its path; nil for an unknown or publish-only peer.
    public func decisions(of id: PeerID) -> DecisionHistory? {
        guard let index = tables.peerIndex[id.rawValue] else { return nil }
        return tables.peers[index].pointee.downlink?.pointee.allocator.history(at: clock)
    }
}
