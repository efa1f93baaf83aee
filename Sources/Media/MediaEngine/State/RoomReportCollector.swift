import Forwarding
import MediaControl
import PeerTransport
import Primitives

/// Collects a part of the report on one room: some of its peers with their tracks and subscriptions, unordered.
struct RoomReportCollector {
    private(set) var report = MediaReport()
    private let room: Int
    private let now: MonotonicTime

    init(room: Int, at now: MonotonicTime) {
        self.room = room
        self.now = now
    }

    /// Adds the peers from index `start` on until there are `limit` entries; returns where the next part begins, nil after the last one.
    mutating func collect(from start: Int, limit: Int, in tables: borrowing Tables) -> Int? {
        var count = 0
        for index in tables.rooms[room].pointee.peers.from(start) {
            guard count < limit else { return index }
            count += append(index, in: tables)
        }
        return nil
    }

    /// Adds the entries of one peer; returns their number.
    private mutating func append(_ index: Int, in tables: borrowing Tables) -> Int {
        var count = 1
        report.peers.append(peerStatistics(index, in: tables))
        for case let track? in tables.peers[index].pointee.uplink.tracks {
            var entry = track.statistics(at: now)
            entry.loudness = tables.rooms[room].pointee.speakers.loudness(of: track.description.id)
            report.tracks.append(entry)
            count += 1
        }
        for subscription in tables.subscriptions(ofPeer: index) {
            report.subscriptions.append(statistics(of: subscription, in: tables))
            count += 1
        }
        return count
    }

    private func peerStatistics(_ index: Int, in tables: borrowing Tables) -> PeerStatistics {
        let peer = tables.peers[index]
        let transport = peer.pointee.transport
        var statistics = PeerStatistics(peer: peer.pointee.id)
        statistics.isConnected = peer.pointee.isConnected
        statistics.usesIPv6 = transport.remoteAddress.map { !$0.isIPv4 } ?? false
        statistics.srtpProfile = transport.srtpProfileName
        statistics.profile = peer.pointee.profile
        statistics.packetsReceived = peer.pointee.packetsReceived
        statistics.bytesReceived = peer.pointee.bytesReceived
        statistics.packetsSent = peer.pointee.packetsSent
        statistics.bytesSent = peer.pointee.bytesSent
        statistics.roundTripTime =
            peer.pointee.downlink?.pointee.roundTrip(at: now) ?? transport.roundTripTime
            ?? peer.pointee.uplink.roundTripTime(at: now)
        if let downlink = peer.pointee.downlink { fill(&statistics, of: index, from: downlink, in: tables) }
        return statistics
    }

    private func fill(
        _ statistics: inout PeerStatistics, of index: Int, from downlink: UnsafeMutablePointer<Downlink>,
        in tables: borrowing Tables
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
        let condition = downlink.pointee.condition(at: now)
        statistics.downlinkLoss = condition.lossRate
        statistics.queueDelay = condition.queueDelay
        statistics.probeBytes = condition.probeBytes
        statistics.isSilent = condition.isSilent
        statistics.estimate = condition.isMeasured ? condition.estimate : nil
        (statistics.allocated, statistics.wanted) = downlink.pointee.totals
    }

    private func statistics(
        of state: UnsafeMutablePointer<SubscriptionState>, in tables: borrowing Tables
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
            statistics.decision = state.pointee.allocation.record?.read(at: now)
            statistics.jitterMilliseconds = track.pointee.track.milliseconds(ofTicks: Double(totals.jitterTicks))
            if let layer = state.pointee.subscription.layer {
                (statistics.width, statistics.height) = track.pointee.track.sizeSent(
                    ofLayer: layer, upTo: state.pointee.subscription.spatialCap)
            }
            statistics.orientationNotNegotiated = state.pointee.lacksOrientation
        }
        return statistics
    }
}
