import Forwarding
public import MediaControl
import PeerTransport
public import Primitives

extension MediaEngine {
    /// Counters and gauges of the whole engine.
    public var statistics: WorkerStatistics {
        var statistics = counters
        statistics.rooms = tables.rooms.count
        statistics.peers = tables.peers.count
        statistics.tracks = tables.tracks.count
        statistics.subscriptions = tables.subscriptions.count
        // Removed tracks have left their sums in `counters`.
        for index in 0..<tables.tracks.end where tables.tracks.contains(index) {
            let totals = tables.tracks[index].pointee.track.requestTotals
            statistics.nacksSent &+= totals.nacks
            statistics.keyframeRequestsSent &+= totals.keyframeRequests
        }
        return statistics
    }

    /// The load, for placing rooms: every stream in and out counts one.
    public var load: Int { tables.rooms.count + tables.peers.count + tables.tracks.count + tables.subscriptions.count }

    /// Everything about one room as of the last turn; nil for a room that does not exist here.
    public func roomStatistics(_ id: RoomID) -> RoomStatistics? {
        guard var statistics = roomStatistics(id, from: 0, limit: .max)?.part else { return nil }
        statistics.sort()
        return statistics
    }

    /// A part of a room's statistics, unordered: of the peers from index `start` on, until there are `limit` entries. `next` is
    /// where the next part begins; nil after the last one.
    ///
    /// Some 1.5 us per entry, which for a room of a thousand is longer than packets may wait.
    public func roomStatistics(
        _ id: RoomID, from start: Int, limit: Int
    ) -> (part: RoomStatistics, next: Int?)? {
        guard let room = tables.roomIndex[id.rawValue] else { return nil }
        var part = RoomStatistics(), index = start, weight = 0
        while index < tables.peers.end, weight / Self.passedPeers < limit {
            weight += 1
            if tables.peers.contains(index), tables.peers[index].pointee.room == room {
                weight += Self.passedPeers * append(index, of: room, to: &part)
            }
            index += 1
        }
        return (part, index < tables.peers.end ? index : nil)
    }

    /// Peers of other rooms that can be skipped in the time that one entry takes.
    private static let passedPeers = 16

    /// Adds the entries of one peer; returns their number.
    private func append(_ index: Int, of room: Int, to part: inout RoomStatistics) -> Int {
        let now = clock
        var count = 1
        part.peers.append(peerStatistics(index))
        for case let track? in tables.peers[index].pointee.uplink.tracks {
            var entry = track.statistics(at: now)
            entry.loudness = tables.rooms[room].pointee.speakers.loudness(of: track.description.id)
            part.tracks.append(entry)
            count += 1
        }
        for subscription in tables.subscriptions(ofPeer: index) {
            part.subscriptions.append(statistics(of: subscription, at: now))
            count += 1
        }
        return count
    }

    private func peerStatistics(_ index: Int) -> PeerStatistics {
        let peer = tables.peers[index]
        let transport = peer.pointee.transport
        var statistics = PeerStatistics(peer: peer.pointee.id)
        statistics.isConnected = transport.isConnected
        statistics.usesIPv6 = transport.remoteAddress.map { !$0.isIPv4 } ?? false
        statistics.srtpProfile = transport.srtpProfileName
        statistics.profile = peer.pointee.profile
        statistics.packetsReceived = peer.pointee.packetsReceived
        statistics.bytesReceived = peer.pointee.bytesReceived
        statistics.packetsSent = peer.pointee.packetsSent
        statistics.bytesSent = peer.pointee.bytesSent
        statistics.roundTripTime =
            peer.pointee.downlink?.pointee.roundTrip ?? transport.roundTripTime ?? peer.pointee.uplink.roundTripTime
        if let downlink = peer.pointee.downlink { fill(&statistics, of: index, from: downlink) }
        return statistics
    }

    private func fill(
        _ statistics: inout PeerStatistics, of index: Int, from downlink: UnsafeMutablePointer<Downlink>
    ) {
        statistics.packetsSent &+= downlink.pointee.packetsSent
        statistics.bytesSent &+= downlink.pointee.bytesSent
        statistics.rtpPacketsSent = downlink.pointee.packetsSent
        // Memory that exists because the peer receives.
        statistics.downlinkStateBytes = downlink.pointee.memoryBytes
        for subscription in tables.subscriptions(ofPeer: index) {
            statistics.downlinkStateBytes +=
                MemoryLayout<SubscriptionState>.stride + subscription.pointee.subscription.memoryBytes
        }
        let condition = downlink.pointee.condition(at: clock)
        statistics.downlinkLoss = condition.lossRate
        statistics.queueDelay = condition.queueDelay
        statistics.probeBytes = condition.probeBytes
        statistics.isSilent = condition.isSilent
        statistics.estimate = condition.isMeasured ? condition.estimate : nil
        (statistics.allocated, statistics.wanted) = downlink.pointee.allocator.totals
    }

    private func statistics(
        of state: UnsafeMutablePointer<SubscriptionState>, at now: MonotonicTime
    ) -> SubscriptionStatistics {
        let totals = state.pointee.subscription.totals
        var statistics = SubscriptionStatistics(subscription: state.pointee.subscription.id)
        statistics.packetsSent = totals.packets
        statistics.bytesSent = totals.bytes
        statistics.bitrate = state.pointee.subscription.bitrate(at: now)
        statistics.retransmissionsSent = totals.repeats
        statistics.nacksReceived = totals.nacks
        statistics.keyframeRequestsReceived = totals.keyframeRequests
        statistics.layerSwitches = totals.switches
        statistics.isPaused = state.pointee.subscription.isPaused
        statistics.fractionLost = Double(totals.fractionLost) / 256
        if state.pointee.track >= 0 {
            let track = tables.tracks[state.pointee.track]
            statistics.track = track.pointee.id
            statistics.layer = state.pointee.subscription.layer.map { track.pointee.track.rank(ofLayer: $0) }
            statistics.orientationNotNegotiated = state.pointee.lacksOrientation
        }
        return statistics
    }
}
