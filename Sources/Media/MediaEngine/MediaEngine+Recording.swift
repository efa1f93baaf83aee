import Forwarding
import MediaControl
import Primitives

// Recording: a track's best layer as one more stream, which goes into records for a recorder instead of to a peer. A track is recorded once at most.

extension MediaEngine {
    func record(_ description: RecordedStreamDescription, at now: MonotonicTime) -> Bool {
        guard let index = tables.trackIndex[description.track.rawValue], recorded[description.id] == nil else {
            return false
        }
        let state = tables.tracks[index]
        guard state.pointee.recording < 0 else { return false }
        let track = state.pointee.track
        let number = recorded.add(RecordedStream(description, of: track, random: &random, at: now))
        state.pointee.recording = number
        recordedTracks[description.id] = index
        demandChanged(of: index, at: now)
        if let layer = recorded.stream(number).pointee.layerToRequest(of: track, at: now) {
            requestKeyframe(index, layer: layer)
        }
        return true
    }

    func endRecording(_ id: SubscriptionID, at now: MonotonicTime) -> Bool {
        guard let index = recordedTracks[id] else { return false }
        endRecording(ofTrack: index, at: now)
        demandChanged(of: index, at: now)
        return true
    }

    /// Ends the recording of a track, if it is recorded.
    func endRecording(ofTrack index: Int, at now: MonotonicTime) {
        let state = tables.tracks[index]
        guard state.pointee.recording >= 0 else { return }
        recordedTracks[recorded.stream(state.pointee.recording).pointee.description.id] = nil
        recorded.remove(state.pointee.recording, at: now)
        state.pointee.recording = -1
    }

    /// Writes this turn's packets of a track that is recorded.
    func writeRecords(_ index: Int, _ state: UnsafeMutablePointer<TrackState>, at now: MonotonicTime) {
        let number = state.pointee.recording
        if let layer = recorded.write(number, of: state.pointee.track, at: now) { requestKeyframe(index, layer: layer) }
        let held = recorded.stream(number).pointee.heldUntil
        if held != .distantFuture { deadlines.hasten(.track(index), to: held) }
    }

    /// Whether there are records to hand on.
    public var hasRecords: Bool { recorded.hasRecords }

    /// Lends the records of the last turn (see `RecordBatch`) to `take`, which says how many bytes the recorder has room for now, and whether that
    /// is ample: only then do streams go on that found no room.
    public func handOnRecords(_ take: (UnsafeRawBufferPointer) -> (room: Int, isAmple: Bool)) {
        recorded.handOn(at: clock, take)
    }
}
