import Forwarding
import MediaControl
import Primitives

// Which layers of a video somebody wants, so that its publisher may stop the others.
//
// What viewers ask for counts, not what they are sent: a layer that bandwidth keeps from them may be theirs any moment, and stopping it
// would restart the encoder of all layers whenever an estimate wavers. Layers below a wanted one are wanted too: they are what is left
// when bandwidth falls.

extension MediaEngine {
    /// A wish, a subscription or a size changed: layers that are wanted again are told at once, those that nobody wants any more
    /// when that has lasted.
    func demandChanged(of index: Int, at now: MonotonicTime) {
        let state = tables.tracks[index]
        guard state.pointee.track.description.kind == .video else { return }
        let wanted = wantedLayers(of: index)
        let told = toldLayers(of: index)
        if wanted & ~told != 0 { tellLayers(wanted | told, of: index) }
        guard wanted != toldLayers(of: index) else {
            state.pointee.fadesAt = .distantFuture
            return
        }
        guard state.pointee.fadesAt == .distantFuture else { return }
        state.pointee.fadesAt = now + Self.fadeTime
        let room = tables.peers[state.pointee.peer].pointee.room
        tables.rooms[room].pointee.fading.append(state.pointee.id)
        setDeadline(ofRoom: room)
    }

    /// The same, for a change of one viewer's wishes.
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

    /// A window that is resized, a speaker that is gone for a moment: that is no reason to restart an encoder. Well within the 5 s
    /// after which a publisher should be sending no more.
    private static var fadeTime: TimeInterval { .seconds(2) }

    /// Tells what nobody has wanted for long enough.
    func advanceFading(ofRoom room: Int, to now: MonotonicTime) {
        guard !tables.rooms[room].pointee.fading.isEmpty else { return }
        var left: [TrackID] = []
        for id in tables.rooms[room].pointee.fading {
            guard let index = tables.trackIndex[id.rawValue], tables.tracks[index].pointee.fadesAt != .distantFuture,
                !left.contains(id)
            else { continue }
            guard tables.tracks[index].pointee.fadesAt <= now else {
                left.append(id)
                continue
            }
            tables.tracks[index].pointee.fadesAt = .distantFuture
            let wanted = wantedLayers(of: index)
            if wanted != toldLayers(of: index) { tellLayers(wanted, of: index) }
        }
        tables.rooms[room].pointee.fading = left
    }

    /// Sets when something of a room is due.
    func setDeadline(ofRoom room: Int) {
        var next = tables.rooms[room].pointee.speakers.nextDeadline
        for id in tables.rooms[room].pointee.fading {
            if let index = tables.trackIndex[id.rawValue] { next = min(next, tables.tracks[index].pointee.fadesAt) }
        }
        deadlines.set(DeadlineOwner.room(room), to: next)
    }

    /// What the publisher knows to be wanted; all of what it has not sent yet.
    private func toldLayers(of index: Int) -> UInt8 {
        tables.tracks[index].pointee.toldLayers & LayerMask.all(of: tables.tracks[index].pointee.track)
    }

    private func tellLayers(_ layers: UInt8, of index: Int) {
        let state = tables.tracks[index]
        state.pointee.toldLayers = layers
        let flags = (0..<LayerMask.count(of: state.pointee.track)).map { layers & (1 << UInt8($0)) != 0 }
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
            guard !state.pointee.subscription.isPaused, !state.pointee.picture.wish.isHidden else { continue }
            // One of too many may be the next speaker: its smallest picture is ready.
            wanted |=
                state.pointee.picture.isSurplus
                ? LayerMask.upTo(0, of: track)
                : LayerMask.within(state.pointee.subscription.limits(of: track), of: track)
        }
        return wanted
    }
}

/// Layers as bits: by their place in the description, or where there is only one stream its spatial layers.
private enum LayerMask {
    /// How many there are: of a stream's spatial layers the most that it ever had, as its publisher may have been told to stop some.
    static func count(of track: PublishedTrack) -> Int {
        track.layerCount > 1 ? track.layerCount : min(track.layer(0).pointee.mostSpatialLayers, 8)
    }

    static func all(of track: PublishedTrack) -> UInt8 { UInt8(truncatingIfNeeded: 1 << count(of: track) - 1) }

    /// The layers up to a rank.
    static func upTo(_ rank: Int, of track: PublishedTrack) -> UInt8 {
        var mask: UInt8 = 0
        for layer in 0..<count(of: track) where self.rank(of: layer, in: track) <= rank { mask |= 1 << UInt8(layer) }
        return mask
    }

    /// The layers that a viewer with these limits may be sent.
    static func within(_ limits: ViewerLimits, of track: PublishedTrack) -> UInt8 {
        var top = limits.spatial ?? .max
        if let height = limits.height {
            let filling = (0..<count(of: track)).filter { self.height(of: $0, in: track) >= height }
                .map { rank(of: $0, in: track) }
            top = min(top, filling.min() ?? .max)
        }
        return top >= count(of: track) ? all(of: track) : upTo(max(top, 0), of: track)
    }

    private static func rank(of layer: Int, in track: PublishedTrack) -> Int {
        track.layerCount > 1 ? track.rank(ofLayer: layer) : layer
    }

    /// Lines of a layer; of spatial ones the size of the highest is known, each is twice as large as the one below.
    private static func height(of layer: Int, in track: PublishedTrack) -> Int {
        guard track.layerCount == 1 else { return track.layer(layer).pointee.height }
        let above = layer - (track.layer(0).pointee.spatialLayers - 1)
        let highest = track.layer(0).pointee.height
        return above > 0 ? highest << above : highest >> -above
    }
}
