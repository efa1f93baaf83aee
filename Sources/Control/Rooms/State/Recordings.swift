import MediaControl
import Primitives

/// The recordings of a room that are in progress, and the streams of each.
struct Recordings {
    private struct Active {
        var info: RecordingInfo
        var streams: [TrackID: SubscriptionID] = [:]
    }

    private var active: [Active] = []
    /// Somebody ended the recording that the policy began: it begins no other before its rules change.
    var isPolicyOverruled = false

    /// In the order in which they began.
    var infos: [RecordingInfo] { active.map(\.info) }

    mutating func add(_ info: RecordingInfo) { active.append(Active(info: info)) }

    /// The one that the policy began.
    var byPolicy: RecordingInfo? { active.first { $0.info.isByPolicy }?.info }

    /// Tracks that are recorded.
    var tracks: [TrackID] { active.flatMap(\.streams.keys).sorted() }

    /// The recording that a track belongs to and that does not have it yet; a track is recorded once.
    func recording(for track: TrackInfo, _ id: TrackID, _ policy: RoomPolicy) -> RecordingInfo? {
        guard !isRecorded(id) else { return nil }
        return active.first { $0.info.scope.bounded(by: policy).contains(track) }?.info
    }

    /// Takes a track out of the recording that has it and that `policy` does not let have it any more; the stream of it.
    mutating func removeUnwanted(_ track: TrackInfo, _ id: TrackID, _ policy: RoomPolicy) -> SubscriptionID? {
        for index in active.indices {
            guard let stream = active[index].streams[id], !active[index].info.scope.bounded(by: policy).contains(track)
            else { continue }
            active[index].streams[id] = nil
            return stream
        }
        return nil
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
