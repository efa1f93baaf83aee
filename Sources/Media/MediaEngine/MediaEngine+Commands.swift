import Forwarding
public import MediaControl
import PeerTransport
public import Primitives

extension MediaEngine {
    /// Executes a command of the control plane; an unknown id is counted and ignored.
    public func apply(_ command: MediaCommand, at now: MonotonicTime, into batch: inout OutboundBatch) {
        clock = now
        abandonOpenTurn()
        let isKnown =
            switch command {
            case .addRoom(let id): addRoom(id)
            case .removeRoom(let id): removeRoom(id)
            case .setRoomAudio(let id, let audio): setAudio(audio, of: id, at: now)
            case .addPeer(let description): addPeer(description, at: now)
            case .movePeer(let id, let room): movePeer(id, to: room, at: now)
            case .removePeer(let id): closePeer(id, at: now, into: &batch)
            case .setRemoteTransport(let id, let remote): setRemote(remote, of: id, at: now, into: &batch)
            case .restartICE(let id, let local): restartICE(of: id, local: local, at: now)
            case .setDownlinkPolicy(let id, let policy): setPolicy(policy, of: id, at: now)
            case .setCapture(let id, let settings): setCapture(settings, of: id)
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
            setAlwaysForwarded(index, always)
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
}
