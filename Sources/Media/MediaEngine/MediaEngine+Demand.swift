import Forwarding
import MediaControl
import Primitives

// Which layers of a video somebody wants, so that its publisher may stop the others.
//
// What viewers ask for counts, not what they are sent: a layer that bandwidth keeps from them may be theirs any moment, and stopping it
// would restart the encoder of all layers whenever an estimate wavers. Layers below a wanted one are wanted too: they are what is left
// when bandwidth falls.

extension MediaEngine {
    /// A preference, a subscription or a size changed.
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

    /// The same, for a change of one subscriber's preferences.
    func demandChanged(by subscription: Int, at now: MonotonicTime) {
        let track = tables.subscriptions[subscription].pointee.track
        if track >= 0 { demandChanged(of: track, at: now) }
    }

    /// Takes what an uplink tells. A size that became known says which layer a viewer's height asks for.
    func take(_ told: [MediaEvent], at now: MonotonicTime) {
        for event in told {
            events.append(event)
            guard case .trackDimensions(let id, _, _, _) = event, let index = tables.trackIndex[id.rawValue] else {
                continue
            }
            demandChanged(of: index, at: now)
        }
    }

    /// Announces what nobody has wanted for long enough.
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

    /// Sets when something of a room is due.
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

    /// Bit by bit, the layers by their place in the description, or the spatial ones inside the only stream. Without any subscriber the smallest
    /// of a description stays, so that whoever comes has a picture at once; where all subscribers look away none does.
    private func wantedLayers(of index: Int) -> UInt8 {
        let track = tables.tracks[index].pointee.track
        let all = LayerMask.all(of: track)
        var wanted: UInt8 = 0
        // Layers inside a stream come back slowly: Chromium took 11 s from the smallest to the largest, as its encoder and its estimate begin anew.
        guard tables.tracks[index].pointee.firstSubscription >= 0 else {
            return track.layerCount > 1 ? LayerMask.upTo(0, of: track) : all
        }
        for state in tables.subscriptions(ofTrack: index) where wanted != all {
            guard !state.pointee.subscription.isPaused, !state.pointee.allocation.display.isHidden else { continue }
            // One of too many may be the next speaker: its smallest picture is ready.
            wanted |=
                state.pointee.allocation.isSurplus
                ? LayerMask.upTo(0, of: track)
                : LayerMask.within(state.pointee.subscription.limits(of: track), of: track)
        }
        return wanted
    }
}
