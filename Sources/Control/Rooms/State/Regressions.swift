import MediaControl
import Primitives

/// Tracks all of whose subscribers receive the backup codec, as their publishers want it (``BackupCodecPolicy/regression``), until nobody subscribes to them any more.
struct Regressions: Sendable {
    /// Whether its publisher was told that somebody needs the first codec all the same.
    private var isFirstWanted: [TrackID: Bool] = [:]

    func contains(_ id: TrackID) -> Bool { isFirstWanted[id] != nil }

    /// Whether a track's publisher was told to send nothing in the first codec.
    func stopsFirstCodec(of id: TrackID) -> Bool { isFirstWanted[id] == false }

    /// The publisher goes on as it was told (`sendsFirstCodec`) until ``review(_:_:isRecorded:_:)``.
    mutating func insert(_ id: TrackID, sendsFirstCodec: Bool = true) { isFirstWanted[id] = sendsFirstCodec }

    /// Ends those that are over, and tells publishers where the need for the first codec has changed: a subscriber may play that alone, and a recording keeps what it began with.
    mutating func review(
        _ routing: Routing, _ roster: inout Roster, isRecorded: (TrackID) -> Bool, _ turn: inout RoomTurn
    ) {
        for (id, was) in isFirstWanted.sorted(by: { $0.key < $1.key }) {
            guard let track = routing[id] else {
                isFirstWanted[id] = nil
                continue
            }
            let subscribers = routing.subscribers(of: id)
            let isOver = track.backup == nil || subscribers.isEmpty
            let isWanted = isOver || isRecorded(id) || subscribers.contains { routing[$0]?.description?.track == id }
            isFirstWanted[id] = isOver ? nil : isWanted
            guard isWanted != was else { continue }
            var layers = track.wantedLayers.isEmpty ? [WantedLayer(rid: nil, isWanted: true)] : track.wantedLayers
            if !isWanted { for index in layers.indices { layers[index].isWanted = false } }
            roster.notify(track.publisher, .layersWanted(track: track.info.sid, layers: layers), &turn)
        }
    }
}
