import Forwarding
public import MediaControl
import PeerTransport
public import Primitives

// The control plane: its commands come in, reports go out.

extension WorkerEngine {
    // MARK: - Commands

    /// Executes a command of the control plane; an unknown id is counted and ignored.
    public func apply(_ command: MediaCommand, at now: MonotonicTime, into batch: inout OutboundBatch) {
        begin(at: now)
        let isKnown =
            switch command {
            case .addRoom(let id): addRoom(id)
            case .removeRoom(let id): removeRoom(id)
            case .setRoomAudio(let id, let audio): tables.setAudio(audio, of: id)
            case .addPeer(let description): addPeer(description, at: now)
            case .movePeer(let id, let room): movePeer(id, to: room, at: now)
            case .removePeer(let id): closePeer(id, at: now, into: &batch)
            case .setRemoteTransport(let id, let remote): setRemote(remote, of: id, at: now, into: &batch)
            case .restartICE(let id, let local): restartICE(of: id, local: local, at: now)
            case .setDownlinkPolicy(let id, let policy): setPolicy(policy, of: id, at: now)
            case .setCapture(let id, let settings): taps.set(settings, of: id, in: tables)
            case .setTrackTraits(let id, let traits): setTraits(traits, of: id, at: now)
            case .setDisplayPreference(let id, let display): setDisplay(display, of: id, at: now)
            case .addTrack, .updateTrack, .removeTrack, .setTrackMuted, .setTrackAlwaysForwarded,
                .setTrackMaximumBitrate,
                .requestKeyframe:
                applyToTrack(command, at: now)
            case .record(let description): record(description, at: now)
            case .endRecording(let id): endRecording(id, at: now)
            case .subscribe, .updateSubscription, .unsubscribe, .setSubscriptionPaused, .setLayerPreference,
                .switchSubscription:
                applyToSubscription(command, at: now)
            case .acceptData, .openDataChannel, .closeDataChannel, .sendData, .releaseData:
                applyToData(command, at: now)
            }
        if !isKnown { counters.commandsIgnored &+= 1 }
    }

    private func applyToTrack(_ command: MediaCommand, at now: MonotonicTime) -> Bool {
        switch command {
        case .addTrack(let description): return addTrack(description, at: now)
        case .updateTrack(let description): return updateTrack(description)
        case .removeTrack(let id):
            guard let index = tables.trackIndex[id.rawValue] else { return false }
            removeTrack(index)
        case .setTrackMuted(let id, let muted):
            guard let index = tables.trackIndex[id.rawValue] else { return false }
            setMuted(index, muted, at: now)
        case .setTrackAlwaysForwarded(let id, let always):
            guard let index = tables.trackIndex[id.rawValue] else { return false }
            tables.setAlwaysForwarded(index, always)
        case .setTrackMaximumBitrate(let id, let bitrate):
            guard let index = tables.trackIndex[id.rawValue] else { return false }
            let peer = tables.tracks[index].pointee.peer
            tables.peers[peer].pointee.uplink.setMaximumBitrate(id, bitrate)
            touch(peer)
        case .requestKeyframe(let id):
            guard let index = tables.trackIndex[id.rawValue] else { return false }
            let track = tables.tracks[index].pointee.track
            for layer in 0..<track.layerCount where track.isActive(layer: layer, at: now) {
                requestKeyframe(index, layer: layer)
            }
        default: return false
        }
        return true
    }

    private func applyToSubscription(_ command: MediaCommand, at now: MonotonicTime) -> Bool {
        switch command {
        case .subscribe(let description): return subscribe(description, at: now)
        case .updateSubscription(let description):
            guard let index = tables.subscriptionIndex[description.id.rawValue] else { return false }
            update(subscription: index, description, at: now)
        case .unsubscribe(let id):
            guard let index = tables.subscriptionIndex[id.rawValue] else { return false }
            removeSubscription(index)
        case .setSubscriptionPaused(let id, let paused):
            guard let index = tables.subscriptionIndex[id.rawValue] else { return false }
            setPaused(index, paused, at: now)
        case .setLayerPreference(let id, let preference):
            guard let index = tables.subscriptionIndex[id.rawValue] else { return false }
            setPreference(index, preference, at: now)
        case .switchSubscription(let id, let track):
            guard let index = tables.subscriptionIndex[id.rawValue] else { return false }
            return switchSubscription(index, to: track, at: now)
        default: return false
        }
        return true
    }

    // MARK: - Reports

    /// Counters and gauges of the whole engine.
    public var statistics: WorkerStatistics {
        var statistics = counters
        statistics.rooms = tables.rooms.count
        statistics.peers = tables.peers.count
        statistics.tracks = tables.tracks.count
        statistics.subscriptions = tables.subscriptions.count
        statistics.handshakeFailures = transports.handshakeFailures
        // Removed tracks have left their sums in `counters`.
        for index in 0..<tables.tracks.end where tables.tracks.contains(index) {
            let totals = tables.tracks[index].pointee.track.requestTotals
            statistics.nacksSent &+= totals.nacks
            statistics.keyframeRequestsSent &+= totals.keyframeRequests
        }
        return statistics
    }

    /// The load, for placing rooms: every incoming and outgoing stream counts one.
    public var load: Int { tables.rooms.count + tables.peers.count + tables.tracks.count + tables.subscriptions.count }

    /// The report that `scope` requests, as of the last turn; nil for a room that does not exist here.
    public func report(_ scope: ReportScope) -> MediaReport? {
        guard var report = report(scope, from: 0, limit: .max)?.part else { return nil }
        report.sort()
        return report
    }

    /// A part of a report, unordered. A room is reported in parts: each covers the peers from index `start` on, until there are `limit` entries. `next` is
    /// where the next part begins; nil after the last one.
    ///
    /// Some 1.5 us per entry, which for a room of a thousand is longer than packets may wait.
    public func report(_ scope: ReportScope, from start: Int, limit: Int) -> (part: MediaReport, next: Int?)? {
        switch scope {
        case .room(let id):
            guard let room = tables.roomIndex[id.rawValue] else { return nil }
            var collector = RoomReportCollector(room: room, at: clock)
            let next = collector.collect(from: start, limit: limit, in: tables)
            return (collector.report, next)
        case .downlinks(let ids, let withHistory):
            var report = MediaReport()
            report.downlinks = ids.compactMap { id in
                tables.peerIndex[id.rawValue].flatMap {
                    tables.peers[$0].pointee.downlink?.pointee.report(
                        in: tables.subscriptions.base, withHistory: withHistory, at: clock)
                }
            }
            return (report, nil)
        case .captures(let ids):
            var report = MediaReport()
            report.captures = taps.drain(of: ids)
            return (report, nil)
        }
    }
}
