import AccessTokens
import Logging
import MediaControl
import RoomService
import Rooms
import SDP
import Synchronization
import Testing

@testable import martlet

@Suite("Log lines of rooms")
struct RoomLogTests {
    /// Every kind of event and the line an operator reads.
    static let lines: [(event: RoomLogEvent, line: String)] = [
        (.roomStarted, "info rooms: room started room=studio"),
        (.roomEnded, "info rooms: room ended room=studio"),
        (
            .revocationChanged(.token("t-1"), until: 1_700_000_000_000, by: "key/op"),
            "info rooms: tokens revoked tokenId=t-1 until=1700000000000 by=key/op"
        ),
        (
            .revocationChanged(.identity("ada"), until: nil, by: nil),
            "info rooms: revocation of tokens ended identity=ada until=now by=operator"
        ),
        (
            .participantJoined(ada),
            #"info rooms: participant joined room=studio participant=PA_1 identity="ada lovelace""#
        ),
        (
            .participantLeft(ada, reason: .duplicateIdentity, hasConnected: true),
            #"info rooms: participant left room=studio participant=PA_1 identity="ada lovelace" reason=duplicate_identity connected=true"#
        ),
        (
            .trackPublished(microphone(muted: false)),
            "info rooms: track published room=studio participant=PA_1 track=TR_1"
        ),
        (
            .trackUnpublished(microphone(muted: false)),
            "info rooms: track unpublished room=studio participant=PA_1 track=TR_1"
        ),
        (
            .trackMuted(microphone(muted: true)),
            "info rooms: track muted room=studio participant=PA_1 track=TR_1"
        ),
        (
            .trackMuted(microphone(muted: false)),
            "info rooms: track unmuted room=studio participant=PA_1 track=TR_1"
        ),
        (
            .dominantSpeakerChanged(participant: nil),
            "debug rooms: dominant speaker changed room=studio participant=none"
        ),
        (
            .qualityChanged(participant: "PA_1", quality: 4),
            "debug rooms: quality changed room=studio participant=PA_1 quality=4"
        ),
        (
            .joinRefused(identity: "bob", code: .roomFull),
            "info rooms: join refused room=studio identity=bob code=room_full"
        ),
        (
            .connectionChanged(participant: "PA_1", connection: "pub", state: .connected, reason: nil),
            "info rooms: connection connected room=studio participant=PA_1 connection=pub"
        ),
        (
            .connectionChanged(participant: "PA_1", connection: "pub", state: .closed, reason: "consentExpired"),
            "info rooms: connection closed room=studio participant=PA_1 connection=pub reason=consentExpired"
        ),
        (
            .iceFailed(
                participant: "PA_1", connection: "pub",
                server: CandidateSummary([Candidate(foundation: "1", address: "192.0.2.1", port: 7_900)]),
                client: CandidateSummary()),
            #"info rooms: ICE failed room=studio participant=PA_1 connection=pub serverCandidates="1 host" clientCandidates=none"#
        ),
        (
            .noCommonCodec(participant: "PA_2", track: "TR_1"),
            "debug rooms: no common codec room=studio participant=PA_2 track=TR_1"
        ),
    ]

    private static let ada = ParticipantInfo(
        sid: "PA_1", identity: "ada lovelace", name: "", metadata: "", profile: .full,
        permissions: Permissions(VideoGrant()), joinedAt: 0)

    private static func microphone(muted: Bool) -> TrackInfo {
        var info = TrackInfo(
            sid: "TR_1", participant: "PA_1", identity: "ada", name: "", kind: .audio, source: .microphone, mid: "0")
        info.muted = muted
        return info
    }

    @Test("C14: events are logged in plain words", arguments: lines)
    func words(event: RoomLogEvent, line: String) {
        let written = Mutex<[String]>([])
        let output = LogOutput(level: .debug) { text in written.withLock { $0.append(text) } }
        RoomLog(logger: Logger("rooms", output: output)).write(
            RoomLogEntry(room: "studio", roomSID: "RM_1", sequence: 1, at: 0, event: event))
        #expect(written.withLock { $0.map { $0.drop { $0 != " " }.dropFirst() } } == [line[...]])
    }
}
