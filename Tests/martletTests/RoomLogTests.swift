import Logging
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
            .participantJoined(participant: "PA_1", identity: "ada lovelace"),
            #"info rooms: participant joined room=studio participant=PA_1 identity="ada lovelace""#
        ),
        (
            .participantLeft(participant: "PA_1", identity: "ada", reason: .duplicateIdentity),
            "info rooms: participant left room=studio participant=PA_1 identity=ada reason=duplicate_identity"
        ),
        (
            .trackPublished(participant: "PA_1", track: "TR_1"),
            "info rooms: track published room=studio participant=PA_1 track=TR_1"
        ),
        (
            .trackUnpublished(participant: "PA_1", track: "TR_1"),
            "info rooms: track unpublished room=studio participant=PA_1 track=TR_1"
        ),
        (.trackMuted(track: "TR_1", true), "info rooms: track muted room=studio track=TR_1"),
        (.trackMuted(track: "TR_1", false), "info rooms: track unmuted room=studio track=TR_1"),
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

    @Test("C14: events are logged in plain words", arguments: lines)
    func words(event: RoomLogEvent, line: String) {
        let written = Mutex<[String]>([])
        let output = LogOutput(level: .debug) { text in written.withLock { $0.append(text) } }
        RoomLog(logger: Logger("rooms", output: output)).write(RoomLogEntry(room: "studio", at: 0, event: event))
        #expect(written.withLock { $0.map { $0.drop { $0 != " " }.dropFirst() } } == [line[...]])
    }
}
