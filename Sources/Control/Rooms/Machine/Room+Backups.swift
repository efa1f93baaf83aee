import MediaControl
import Primitives
import SDP

// The second encoding of a track, in its backup codec: it is announced, comes and ends.

extension Room {
    /// A track that is published was announced with a backup codec: subscribers' sections offer both from now on.
    mutating func expectBackup(of id: TrackID, _ announcement: TrackAnnouncement, _ turn: inout RoomTurn) {
        guard let track = state.routing[id], var announcements = state.roster[track.publisher]?.announcements else {
            return
        }
        if let backup = announcement.backup(of: track.info.sid) {
            announcements.expect(backup) { turn.sid("TR_") }
            state.roster.update(track.publisher) { $0.announcements = announcements }
        }
        for subscription in state.routing.subscribers(of: id) { distribution.renegotiate(subscription, &state) }
    }

    /// The encoding of the track `main` in its backup codec: nobody sees a track of its own.
    mutating func receiveBackup(
        of main: String, _ sending: RemoteSending, mid: String, on connection: Connection, of session: SessionID,
        _ turn: inout RoomTurn
    ) {
        // What its publisher unpublished meanwhile has none any more.
        guard let track = state.routing.track(sid: main), track.publisher == session, track.backup == nil,
            track.connection == connection.id
        else { return }
        let id = TrackID(state.nextNumber())
        var info = track.info
        info.mid = mid
        info.clientTrackID = sending.shownTrackID
        let description = TrackDescription(
            id, peer: connection.peer, info, sending, maximumBitrate: track.description.maximumBitrate)
        state.routing.insert(
            RoomTrack(
                id: id, publisher: session, connection: connection.id, info: info, description: description,
                formats: sending.formats, preferredCodec: info.backupCodec, main: track.id))
        state.roster.updateConnection(connection.id, of: session) { $0.trackByMid[mid] = id }
        turn.media(.addTrack(description))
        if info.muted { turn.media(.setTrackMuted(id, true)) }
        if TrackTraits(info) != TrackTraits() { turn.media(.setTrackTraits(id, TrackTraits(info))) }
        state.capTracks(of: session, &turn)
        let expected = info.backupCodec.map(NegotiatedFormat.expected) ?? []
        if !Self.subscribersSeeTheSame(expected, sending.formats) {
            for subscription in state.routing.subscribers(of: track.id) {
                distribution.renegotiate(subscription, &state)
            }
        }
        state.chooseEncodings(of: track.id, &turn)
    }

    /// The second encoding of a track has ended. Where the track goes on, its section may come back without another announcement.
    mutating func endBackup(_ backup: RoomTrack, of main: TrackID, _ turn: inout RoomTurn) {
        state.routing.remove(backup.id)
        state.chooseEncodings(of: main, &turn)
        guard let info = state.routing[main]?.info, let codec = info.backupCodec,
            var announcements = state.roster[backup.publisher]?.announcements
        else { return }
        let id = backup.info.clientTrackID ?? backup.info.mid
        announcements.expect(.backup(id, in: codec, of: info.sid, from: info.source)) { turn.sid("TR_") }
        state.roster.update(backup.publisher) { $0.announcements = announcements }
    }
}
