import Forwarding
public import MediaControl
import PeerTransport
public import Primitives

extension MediaEngine {
    /// Counters and gauges of the whole engine.
    public var statistics: WorkerStatistics {
        var statistics = counters
        statistics.rooms = rooms.count
        statistics.peers = peers.count
        statistics.tracks = tracks.count
        statistics.subscriptions = subscriptions.count
        // Tracks that are gone have left their sums in `counters`.
        for index in 0..<tracks.end where tracks.contains(index) {
            let totals = tracks[index].pointee.track.requestTotals
            statistics.nacksSent &+= totals.nacks
            statistics.keyframeRequestsSent &+= totals.keyframeRequests
        }
        return statistics
    }

    /// How much there is to do, for placing rooms: every stream in and out counts one.
    public var load: Int { rooms.count + peers.count + tracks.count + subscriptions.count }

    /// Everything about one room as of the last turn; nil for a room that is not here.
    public func roomStatistics(_ id: RoomID) -> RoomStatistics? {
        guard var statistics = roomStatistics(id, from: 0, limit: .max)?.part else { return nil }
        statistics.sort()
        return statistics
    }

    /// A part of what there is to say about a room, in no order: of the peers from place `start` on, until there are `limit` entries. `next` is
    /// where the next part begins; nil behind the last one.
    ///
    /// Some 1.5 us an entry, which for a room of a thousand is more than packets may wait.
    public func roomStatistics(
        _ id: RoomID, from start: Int, limit: Int
    ) -> (part: RoomStatistics, next: Int?)? {
        guard let room = roomIndex[id.rawValue] else { return nil }
        var part = RoomStatistics(), index = start, weight = 0
        while index < peers.end, weight / Self.passedPeers < limit {
            weight += 1
            if peers.contains(index), peers[index].pointee.room == room {
                weight += Self.passedPeers * append(index, of: room, to: &part)
            }
            index += 1
        }
        return (part, index < peers.end ? index : nil)
    }

    /// Peers of other rooms that are as soon passed by as an entry is made.
    private static let passedPeers = 16

    /// Adds the entries of one peer; how many.
    private func append(_ index: Int, of room: Int, to part: inout RoomStatistics) -> Int {
        let now = clock
        var count = 1
        part.peers.append(peerStatistics(index))
        for case let track? in peers[index].pointee.uplink.tracks {
            var entry = track.statistics(at: now)
            entry.loudness = rooms[room].pointee.speakers.loudness(of: track.description.id)
            part.tracks.append(entry)
            count += 1
        }
        var next = peers[index].pointee.downlink?.pointee.firstSubscription ?? -1
        while next >= 0 {
            part.subscriptions.append(subscriptionStatistics(next, at: now))
            next = subscriptions[next].pointee.nextOfPeer
            count += 1
        }
        return count
    }

    private func peerStatistics(_ index: Int) -> PeerStatistics {
        let peer = peers[index]
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
        statistics.rtpPacketsSent = peer.pointee.downlink?.pointee.rtpPacketsSent ?? 0
        statistics.roundTripTime =
            peer.pointee.downlink?.pointee.roundTrip ?? transport.roundTripTime ?? peer.pointee.uplink.roundTripTime
        statistics.downlinkStateBytes = downlinkStateBytes(index)
        if let downlink = peer.pointee.downlink, let control = downlink.pointee.control {
            fill(&statistics, from: downlink, control)
        }
        return statistics
    }

    private func fill(
        _ statistics: inout PeerStatistics, from downlink: UnsafeMutablePointer<DownlinkState>,
        _ control: UnsafeMutablePointer<SendControl>
    ) {
        let allocation = downlink.pointee.allocation
        statistics.downlinkLoss = control.pointee.lossRate
        statistics.queueDelay = control.pointee.queueDelay
        statistics.probeBytes = control.pointee.probeBytes
        statistics.allocated = allocation.allocated
        statistics.wanted = allocation.wanted
        statistics.isSilent = control.pointee.isSilent
        guard control.pointee.isEstablished(at: clock) else { return }
        statistics.estimate = control.pointee.estimate(at: clock)
    }

    /// Memory that exists because the peer receives; 0 for publish-only (B3).
    private func downlinkStateBytes(_ index: Int) -> Int {
        guard let downlink = peers[index].pointee.downlink else { return 0 }
        var bytes = MemoryLayout<DownlinkState>.size
        bytes += downlink.pointee.allocation.decisions.memoryBytes + downlink.pointee.allocation.estimates.memoryBytes
        if let control = downlink.pointee.control {
            bytes += MemoryLayout<SendControl>.size + control.pointee.memoryBytes
        }
        var next = downlink.pointee.firstSubscription
        while next >= 0 {
            bytes += MemoryLayout<SubscriptionState>.stride + subscriptions[next].pointee.subscription.memoryBytes
            next = subscriptions[next].pointee.nextOfPeer
        }
        return bytes
    }

    private func subscriptionStatistics(_ index: Int, at now: MonotonicTime) -> SubscriptionStatistics {
        let state = subscriptions[index]
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
            let track = tracks[state.pointee.track]
            statistics.track = track.pointee.id
            statistics.layer = state.pointee.subscription.layer.map { track.pointee.track.rank(ofLayer: $0) }
            statistics.orientationNotNegotiated = state.pointee.lacksOrientation
        }
        return statistics
    }
}
