import Forwarding
import MediaControl
import Primitives

// Which layers of a video are in demand, so that its publisher may stop the others.
//
// Demand is what subscribers prefer, not what they are sent: a layer that exceeds their bandwidth may fit any moment, and stopping it
// would restart the encoder of all layers whenever an estimate fluctuates. Layers below one in demand are in demand too: they are the fallback
// when bandwidth falls.

extension MediaEngine {
    /// Updates the demand after a change of a preference, a subscription or a size.
    func demandChanged(of index: Int, at now: MonotonicTime) {
        let state = tables.tracks[index]
        guard state.pointee.track.description.kind == .video else { return }
        let former = state.pointee.demand.deadline
        let all = LayerMask.all(of: state.pointee.track)
        if let layers = state.pointee.demand.update(to: wantedLayers(of: index), of: all, at: now) {
            announce(layers, of: index)
        }
        guard former == .distantFuture, state.pointee.demand.deadline != .distantFuture else { return }
        let room = tables.peers[state.pointee.peer].pointee.room
        tables.rooms[room].pointee.fading.append(state.pointee.id)
        setDeadline(ofRoom: room)
    }

    /// The same, after a change of one subscriber's preferences.
    func demandChanged(by subscription: Int, at now: MonotonicTime) {
        let track = tables.subscriptions[subscription].pointee.track
        if track >= 0 { demandChanged(of: track, at: now) }
    }

    /// Processes events of an uplink. A new frame size determines which layer a subscriber's height preference selects.
    func take(_ told: [MediaEvent], at now: MonotonicTime) {
        for event in told {
            events.append(event)
            guard case .trackDimensions(let id, _, _, _) = event, let index = tables.trackIndex[id.rawValue] else {
                continue
            }
            demandChanged(of: index, at: now)
        }
    }

    /// Announces layers that have been without demand for long enough.
    func advanceFading(ofRoom room: Int, to now: MonotonicTime) {
        guard !tables.rooms[room].pointee.fading.isEmpty else { return }
        var left: [TrackID] = []
        for id in tables.rooms[room].pointee.fading {
            guard let index = tables.trackIndex[id.rawValue], !left.contains(id) else { continue }
            let state = tables.tracks[index]
            guard state.pointee.demand.deadline != .distantFuture else { continue }
            guard state.pointee.demand.deadline <= now else {
                left.append(id)
                continue
            }
            let all = LayerMask.all(of: state.pointee.track)
            if let layers = state.pointee.demand.expire(with: wantedLayers(of: index), of: all) {
                announce(layers, of: index)
            }
        }
        tables.rooms[room].pointee.fading = left
    }

    /// Sets a room's next deadline.
    func setDeadline(ofRoom room: Int) {
        var next = tables.rooms[room].pointee.speakers.nextDeadline
        for id in tables.rooms[room].pointee.fading {
            if let index = tables.trackIndex[id.rawValue] {
                next = min(next, tables.tracks[index].pointee.demand.deadline)
            }
        }
        deadlines.set(DeadlineOwner.room(room), to: next)
    }

    private func announce(_ layers: UInt8, of index: Int) {
        let state = tables.tracks[index]
        let flags = (0..<state.pointee.track.choiceCount).map { layers & (1 << UInt8($0)) != 0 }
        events.append(.layersWanted(state.pointee.id, flags))
    }

    /// Bitmap of the layers by their position in the description, or of the spatial layers inside the only stream. Without subscribers the smallest
    /// layer of a description stays in demand, so that a new subscriber has video at once; if all subscribers hide the video, none does.
    private func wantedLayers(of index: Int) -> UInt8 {
        let track = tables.tracks[index].pointee.track
        let all = LayerMask.all(of: track)
        var wanted: UInt8 = 0
        // Layers inside a stream resume slowly: Chromium took 11 s from the smallest to the largest, as its encoder and its estimate restart.
        guard tables.tracks[index].pointee.firstSubscription >= 0 else {
            return track.layerCount > 1 ? LayerMask.upTo(0, of: track) : all
        }
        for state in tables.subscriptions(ofTrack: index) where wanted != all {
            guard !state.pointee.subscription.isPaused, !state.pointee.allocation.display.isHidden else { continue }
            // A surplus video may be the next speaker's: keep its smallest layer ready.
            wanted |=
                state.pointee.allocation.isSurplus
                ? LayerMask.upTo(0, of: track)
                : LayerMask.within(state.pointee.subscription.limits(of: track), of: track)
        }
        return wanted
    }
}
