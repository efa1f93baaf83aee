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

    /// Everything about one room as of the last turn; nil for a room that is not here.
    public func roomStatistics(_ id: RoomID) -> RoomStatistics? {
        let now = clock
        guard let room = roomIndex[id.rawValue] else { return nil }
        var statistics = RoomStatistics()
        for index in 0..<peers.end where peers.contains(index) && peers[index].pointee.room == room {
            statistics.peers.append(peerStatistics(index))
            for case let track? in peers[index].pointee.uplink.tracks {
                var entry = track.statistics(at: now)
                entry.loudness = rooms[room].pointee.speakers.loudness(of: track.description.id)
                statistics.tracks.append(entry)
            }
            var next = peers[index].pointee.downlink?.pointee.firstSubscription ?? -1
            while next >= 0 {
                statistics.subscriptions.append(subscriptionStatistics(next, at: now))
                next = subscriptions[next].pointee.nextOfPeer
            }
        }
        statistics.tracks.sort { $0.track < $1.track }
        statistics.subscriptions.sort { $0.subscription < $1.subscription }
        return statistics
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
