import AccessTokens
import EdgeTestSupport
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
    /// Events and the lines that an operator reads.
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
            SampleEvents.event(.participantUpdated),
            #"debug rooms: participant updated room=studio participant=PA_1 identity="ada lovelace""#
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

    /// The same of what rules, operators, recordings and playbacks do.
    static let otherLines: [(type: RoomLogEventType, line: String)] = [
        (.lockChanged, "room locked room=studio lock=password by=PA_2"),
        (.policyChanged, "policy changed room=studio revision=2 by=key/op"),
        (
            .permissionsChanged,
            #"permissions changed room=studio participant=PA_1 permissions="publish (microphone), subscribe, data""#
        ),
        (.publicationRefused, "publication refused room=studio participant=PA_1 identity=ada code=limit_exceeded"),
        (.guestWaiting, "guest waits to be let in room=studio identity=eve"),
        (.guestDecided, "guest let in room=studio identity=eve by=PA_1"),
        (.banStarted, "ban started room=studio identity=eve until=9000 reason=spam"),
        (.banEnded, #"ban ended room=studio identity=eve until=now reason="""#),
        (
            .captureStarted,
            "packet capture started room=studio participant=PA_1 capture=CA_1 by=key/op payload=false"
        ),
        (.captureEnded, "packet capture ended room=studio participant=PA_1 capture=CA_1 by=key/op payload=false"),
        (.recordingStarted, "recording started room=studio recording=RC_1 track=all reason=none"),
        (.recordingStopped, "recording stopped room=studio recording=RC_1 track=all reason=requested"),
        (.recordingGap, "a part of a recording is missing room=studio recording=RC_1 track=TR_1 reason=late"),
        (.recordingReady, "recording ready room=studio recording=RC_1 track=all reason=none"),
        (.recordingFailed, "recording failed room=studio recording=RC_1 track=TR_1 reason=disk_full"),
        (.jobStarted, "job on a recording started room=studio recording=RC_1 job=JB_1 reason=none"),
        (.jobFinished, "job on a recording finished room=studio recording=RC_1 job=JB_1 reason=none"),
        (.jobFailed, "job on a recording failed room=studio recording=RC_1 job=JB_1 reason=interrupted"),
        (.playbackStarted, "playback started room=studio playback=PB_1 identity=player reason=none"),
        (.playbackEnded, "playback ended room=studio playback=PB_1 identity=player reason=finished"),
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

    @Test("C14: an event of every type is logged in plain words")
    func words() {
        let others = Self.otherLines.map { (event: SampleEvents.event($0.type), line: "info rooms: \($0.line)") }
        let all = Self.lines + others
        #expect(Set(all.map { $0.event.type }) == Set(RoomLogEventType.allCases))
        for (event, line) in all { #expect(Self.written(event) == [line]) }
    }

    private static func written(_ event: RoomLogEvent) -> [String] {
        let written = Mutex<[String]>([])
        let output = LogOutput(level: .debug) { text in written.withLock { $0.append(text) } }
        RoomLog(logger: Logger("rooms", output: output)).write(
            RoomLogEntry(room: "studio", roomSID: "RM_1", sequence: 1, at: 0, event: event))
        return written.withLock { $0.map { String($0.drop { $0 != " " }.dropFirst()) } }
    }
}
