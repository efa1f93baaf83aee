import MediaControl
import Primitives

/// The recordings of a room that are in progress, and the streams of each.
struct Recordings {
    private struct Active {
        var info: RecordingInfo
        var streams: [TrackID: SubscriptionID] = [:]
    }

    private var active: [Active] = []

    /// In the order in which they began.
    var infos: [RecordingInfo] { active.map(\.info) }

    mutating func add(_ info: RecordingInfo) { active.append(Active(info: info)) }

    /// The recording that a track belongs to and that does not have it yet; a track is recorded once.
    func recording(for track: TrackInfo, _ id: TrackID) -> RecordingInfo? {
        guard !active.contains(where: { $0.streams[id] != nil }) else { return nil }
        return active.first { $0.info.scope.contains(track) }?.info
    }

    func isRecorded(_ track: TrackID) -> Bool { active.contains { $0.streams[track] != nil } }

    /// The stream that records a track.
    func stream(of track: TrackID) -> SubscriptionID? { active.lazy.compactMap { $0.streams[track] }.first }

    mutating func add(_ stream: SubscriptionID, of track: TrackID, to sid: String) {
        guard let index = active.firstIndex(where: { $0.info.sid == sid }) else { return }
        active[index].streams[track] = stream
    }

    /// A track ended.
    mutating func remove(_ track: TrackID) {
        for index in active.indices { active[index].streams[track] = nil }
    }

    /// Ends a recording; its streams.
    mutating func end(_ sid: String) -> (info: RecordingInfo, streams: [SubscriptionID])? {
        guard let index = active.firstIndex(where: { $0.info.sid == sid }) else { return nil }
        let ended = active.remove(at: index)
        return (ended.info, ended.streams.sorted { $0.key < $1.key }.map(\.value))
    }
}
