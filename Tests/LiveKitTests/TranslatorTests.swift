import CLiveKitProtocol
import MediaControl
import Rooms
import Testing

@testable import LiveKit

@Suite("Events in LiveKit's words")
struct TranslatorTests {
    @Test(
        "Whether a quality is received: by the layer's name in any order, by its spatial number, and the highest layer for all above",
        arguments: [
            ([WantedLayer(rid: "h", isWanted: true), WantedLayer(rid: "q", isWanted: false)], [false, true, true]),
            (
                [
                    WantedLayer(rid: "f", isWanted: false), WantedLayer(rid: "h", isWanted: true),
                    WantedLayer(rid: "q", isWanted: true),
                ], [true, true, false]
            ),
            (
                [
                    WantedLayer(rid: "2", isWanted: true), WantedLayer(rid: "1", isWanted: false),
                    WantedLayer(rid: "0", isWanted: false),
                ], [true, false, false]
            ),
            ([WantedLayer(rid: nil, isWanted: true)], [true, true, true]),
            ([WantedLayer(rid: nil, isWanted: false)], [false, false, false]),
            (
                [
                    WantedLayer(rid: nil, spatial: 0, isWanted: true),
                    WantedLayer(rid: nil, spatial: 1, isWanted: true),
                    WantedLayer(rid: nil, spatial: 2, isWanted: false),
                ], [true, true, false]
            ),
        ])
    func demands(layers: [WantedLayer], enabled: [Bool]) {
        #expect(EventTranslator.demands(layers).map(\.isEnabled) == enabled)
    }

    @Test("A client is muted by others, never unmuted")
    func unmuteRequested() {
        var translator = EventTranslator(people: [])
        func count(_ event: RoomEvent) -> Int {
            translator.signals(for: SequencedEvent(sequence: 1, event: event)).count
        }
        #expect(count(.trackMutedByOther(track: "TR_1", by: nil)) == 1)
        #expect(count(.unmuteRequested(track: "TR_1", by: nil)) == 0)
    }

    @Test("Who leaves is shown as it was, with the reason and without tracks; of somebody unknown the names are shown")
    func left() throws {
        var ada = WireTests.participant
        (ada.metadata, ada.attributes) = ("notes", ["seat": "4"])
        ada.tracks = [
            TrackInfo(
                sid: "TR_1", participant: "PA_1", identity: "ada", name: "", kind: .video, source: .camera, mid: "0")
        ]
        var translator = EventTranslator(people: [ada])
        for (sid, identity, name) in [("PA_1", "ada", "Ada"), ("PA_2", "bob", "")] {
            let event = RoomEvent.participantLeft(participant: sid, identity: identity, reason: .left)
            let signals = translator.signals(for: SequencedEvent(sequence: 1, event: event))
            try WireTests.read(try #require(signals.first)) { message in
                let gone = message.update.pointee.participants[0]!.pointee
                #expect(gone.state == LIVEKIT__PARTICIPANT_INFO__STATE__DISCONNECTED)
                #expect(gone.disconnect_reason == LIVEKIT__DISCONNECT_REASON__CLIENT_INITIATED)
                #expect(String(gone.sid) == sid && String(gone.identity) == identity && String(gone.name) == name)
                #expect(String(gone.metadata) == (name.isEmpty ? "" : "notes"))
                #expect(gone.n_attributes == (name.isEmpty ? 0 : 1) && gone.n_tracks == 0)
            }
        }
    }

    @Test("The demand for a track's two codecs is reported together, the first codec first, until the track is removed")
    func codecDemand() throws {
        var ada = ParticipantInfo(
            sid: "PA_1", identity: "ada", name: "", metadata: "", profile: .full, permissions: Permissions(),
            joinedAt: 0)
        var track = TrackInfo(
            sid: "TR_1", participant: "PA_1", identity: "ada", name: "", kind: .video, source: .camera, mid: "0")
        track.codec = .h264
        ada.tracks = [track]
        var translator = EventTranslator(people: [ada])

        func demands(_ event: RoomEvent) throws -> [ServerSignal.CodecDemand] {
            let signals = translator.signals(for: SequencedEvent(sequence: 1, event: event))
            guard case .subscribedQuality("TR_1", let demands)? = signals.first, signals.count == 1 else { return [] }
            return demands
        }
        func enabled(_ demands: [ServerSignal.CodecDemand]) -> [[Bool]] {
            demands.map { $0.qualities.map(\.isEnabled) }
        }

        let missing = [WantedLayer(rid: nil, isWanted: true)]
        var reported = try demands(.backupWanted(track: "TR_1", codec: .vp8, layers: missing))
        #expect(
            reported.map(\.codec) == [.h264, .vp8] && enabled(reported) == [[true, true, true], [true, true, true]])
        let main = [WantedLayer(rid: "q", isWanted: true), WantedLayer(rid: "h", isWanted: false)]
        reported = try demands(.layersWanted(track: "TR_1", layers: main))
        #expect(
            reported.map(\.codec) == [.h264, .vp8] && enabled(reported) == [[true, false, false], [true, true, true]])
        _ = translator.signals(
            for: SequencedEvent(sequence: 2, event: .trackUnpublished(participant: "PA_1", track: "TR_1")))
        reported = try demands(.layersWanted(track: "TR_1", layers: main))
        #expect(reported.count == 1 && reported[0].codec == nil)
        // Before the first packet of another one.
        (track.sid, track.codec, track.agreedCodec) = ("TR_2", nil, .vp9)
        _ = translator.signals(for: SequencedEvent(sequence: 3, event: .trackPublished(track)))
        let early = translator.signals(
            for: SequencedEvent(sequence: 4, event: .layersWanted(track: "TR_2", layers: main)))
        guard case .subscribedQuality("TR_2", let first)? = early.first else {
            Issue.record("no demand")
            return
        }
        #expect(first.map(\.codec) == [.vp9])
    }

    @Test("A track that is not permitted any more is unpublished for its client; one that never was is refused")
    func ended() throws {
        var ada = ParticipantInfo(
            sid: "PA_1", identity: "ada", name: "", metadata: "", profile: .full, permissions: Permissions(),
            joinedAt: 0)
        ada.tracks = [
            TrackInfo(
                sid: "TR_1", participant: "PA_1", identity: "ada", name: "", kind: .video, source: .camera, mid: "0",
                clientTrackID: "v")
        ]
        var translator = EventTranslator(people: [ada])
        let refused = RoomEvent.publicationRefused(connection: "c", mid: "0", track: "v", code: .permissionDenied)
        _ = translator.signals(
            for: SequencedEvent(sequence: 1, event: .trackUnpublished(participant: "PA_1", track: "TR_1")))
        // The end of a recording of the track is announced in between, for example.
        _ = translator.signals(for: SequencedEvent(sequence: 1, event: .speakersChanged([])))
        guard
            case .trackUnpublished("TR_1")? = translator.signals(for: SequencedEvent(sequence: 2, event: refused)).first
        else {
            Issue.record("not unpublished")
            return
        }
        guard
            case .trackRefused(let request, .notAllowed, _)? = translator.signals(
                for: SequencedEvent(sequence: 3, event: refused)
            ).first
        else {
            Issue.record("not refused")
            return
        }
        #expect(request.clientID == "v")
        let announced = RoomEvent.publicationRefused(
            connection: "c", mid: "1", track: "w", code: .limitExceeded, announced: "TR_2")
        guard
            case .trackUnpublished("TR_2")? = translator.signals(
                for: SequencedEvent(sequence: 4, event: announced)
            ).first
        else {
            Issue.record("not unpublished, although its announcement was answered")
            return
        }
    }

    @Test(
        "I8: a move is announced with a token for the other room, people and data tracks of the room before are not known any more, and a client that lost its connections by it is asked to join"
    )
    func moved() throws {
        let ada = ParticipantInfo(
            sid: "PA_1", identity: "ada", name: "", metadata: "", profile: .full, permissions: Permissions(),
            joinedAt: 0)
        var carl = ada
        (carl.sid, carl.identity) = ("PA_3", "carl")
        let room = RoomInfo(
            sid: "RM_2", name: "booth", metadata: "", topology: .routed, maxParticipants: nil, createdAt: 0)
        var translator = EventTranslator(people: [ada]) { "token of \($0)" }
        let snapshot = SessionSnapshot(
            room: room, participant: ada, others: [carl], subscriptions: [], dominantSpeaker: nil, sequence: 1)
        let signals = translator.signals(for: SequencedEvent(sequence: 1, event: .moved(snapshot)))
        guard signals.count == 3, case .refreshToken("token of booth") = signals[0],
            case .moved(_, "token of booth") = signals[1], case .dataTracksReceived(let tracks) = signals[2],
            tracks.isEmpty
        else {
            Issue.record("\(signals)")
            return
        }
        var awaiting = snapshot
        awaiting.isAwaited = true
        let farewell = translator.signals(for: SequencedEvent(sequence: 2, event: .moved(awaiting)))
        guard farewell.count == 4, case .leave(.migration, .reconnect) = farewell[3] else {
            Issue.record("\(farewell)")
            return
        }
        let closed = RoomEvent.connectionChanged(connection: "main", state: .closed, reason: LeaveReason.moved.rawValue)
        #expect(translator.signals(for: SequencedEvent(sequence: 3, event: closed)).isEmpty)
        let frame = signals[1].frame
        let response = try #require(livekit__signal_response__unpack(nil, frame.count, frame))
        defer { livekit__signal_response__free_unpacked(response, nil) }
        #expect(response.pointee.message_case == LIVEKIT__SIGNAL_RESPONSE__MESSAGE_ROOM_MOVED)
        let reported = try #require(response.pointee.room_moved).pointee
        #expect(String(cString: reported.room.pointee.name) == "booth" && reported.n_other_participants == 1)
        #expect(String(cString: reported.other_participants[0]!.pointee.identity) == "carl")
    }

    @Test(
        "K2: a server that shuts down asks its clients to join anew, on the wire too, and a silent one may ask to go on; other ends ask them to stay away",
        arguments: [
            (LeaveReason.serverShutdown, LIVEKIT__DISCONNECT_REASON__SERVER_SHUTDOWN, LeaveAction.reconnect),
            (.timeout, LIVEKIT__DISCONNECT_REASON__CONNECTION_TIMEOUT, .resume),
            (.removed, LIVEKIT__DISCONNECT_REASON__PARTICIPANT_REMOVED, .disconnect),
            (.roomDeleted, LIVEKIT__DISCONNECT_REASON__ROOM_DELETED, .disconnect),
            (.duplicateIdentity, LIVEKIT__DISCONNECT_REASON__DUPLICATE_IDENTITY, .disconnect),
        ])
    func ended(reason: LeaveReason, number: Livekit__DisconnectReason, action: LeaveAction) throws {
        var translator = EventTranslator(people: [])
        let signals = translator.signals(for: SequencedEvent(sequence: 1, event: .ended(reason, message: nil)))
        #expect(signals.count == 1)
        let frame = try #require(signals.first).frame
        let response = try #require(livekit__signal_response__unpack(nil, frame.count, frame))
        defer { livekit__signal_response__free_unpacked(response, nil) }
        #expect(response.pointee.message_case == LIVEKIT__SIGNAL_RESPONSE__MESSAGE_LEAVE)
        let leave = try #require(response.pointee.leave).pointee
        #expect(leave.reason == number)
        #expect(leave.action.rawValue == action.rawValue)
        #expect(leave.can_reconnect == (action == .disconnect ? 0 : 1))
    }

    @Test("A client whose channel was closed because it read too slowly is asked to connect anew")
    func slowReceiver() throws {
        var translator = EventTranslator(people: [])
        let event = RoomEvent.channelClosed(connection: "main", label: "_reliable", reason: "receiverTooSlow")
        let signals = translator.signals(for: SequencedEvent(sequence: 1, event: event))
        #expect(signals.count == 1)
        guard case .leave(_, .reconnect)? = signals.first else {
            Issue.record("\(signals)")
            return
        }
    }

    @Test(
        "After a resume the first list of speakers says of everybody whether they speak; later ones have what changed")
    func speakersAfterResume() throws {
        let people = ["PA_1", "PA_2"].map {
            ParticipantInfo(
                sid: $0, identity: $0, name: "", metadata: "", profile: .full, permissions: Permissions(), joinedAt: 0)
        }
        for (resumes, first) in [(true, ["PA_1": true, "PA_2": false]), (false, ["PA_1": true])] {
            var translator = EventTranslator(people: people, resumes: resumes)
            for wanted in [first, [:], ["PA_1": false]] {
                let isSpeaking = wanted != ["PA_1": false]
                let speakers = isSpeaking ? [SpeakerInfo(participant: "PA_1", track: "TR_1", loudness: 127)] : []
                let event = SequencedEvent(sequence: 1, event: .speakersChanged(speakers))
                var reported: [String: Bool] = [:]
                for case .speakers(let list) in translator.signals(for: event) {
                    for one in list { reported[one.participant] = one.isActive }
                }
                #expect(reported == wanted)
            }
        }
    }

    @Test("Who has connected learns the quality of those who were there before, and who is moved of those there")
    func quality() {
        var people = ["PA_2", "PA_1", "PA_3"].map {
            ParticipantInfo(
                sid: $0, identity: $0, name: "", metadata: "", profile: .full, permissions: Permissions(), joinedAt: 0)
        }
        (people[0].quality, people[1].quality) = (5, 2)
        var translator = EventTranslator(people: people)
        func reported(_ event: RoomEvent) -> [ParticipantQuality] {
            let signals = translator.signals(for: SequencedEvent(sequence: 1, event: event))
            for case .quality(let list) in signals { return list }
            return []
        }
        let change = [ParticipantQuality(participant: "PA_2", quality: 4)]
        #expect(reported(.qualityChanged(change)) == change)
        let connected = RoomEvent.connectionChanged(connection: "main", state: .connected, reason: nil)
        #expect(reported(connected) == [ParticipantQuality(participant: "PA_1", quality: 2)] + change)
        #expect(reported(connected).isEmpty, "once")
        let room = RoomInfo(
            sid: "RM_2", name: "booth", metadata: "", topology: .routed, maxParticipants: nil, createdAt: 0)
        let snapshot = SessionSnapshot(
            room: room, participant: people[2], others: [people[0]], subscriptions: [], dominantSpeaker: nil,
            sequence: 1)
        #expect(reported(.moved(snapshot)) == [ParticipantQuality(participant: "PA_2", quality: 5)])
    }

    @Test("A video held for want of bandwidth is a paused stream, and an active one when it is sent again")
    func streamState() throws {
        var translator = EventTranslator(people: [])
        for isHeld in [true, false] {
            let event = RoomEvent.subscriptionHeld(
                subscription: "SU_1", participant: "PA_1", track: "TR_1", isHeld: isHeld)
            let signal = try #require(translator.signals(for: SequencedEvent(sequence: 1, event: event)).first)
            try WireTests.read(signal) { message in
                #expect(message.message_case == LIVEKIT__SIGNAL_RESPONSE__MESSAGE_STREAM_STATE_UPDATE)
                let update = message.stream_state_update.pointee
                #expect(update.n_stream_states == 1)
                guard let state = update.stream_states[0]?.pointee else {
                    Issue.record("no state")
                    return
                }
                #expect(String(state.participant_sid) == "PA_1" && String(state.track_sid) == "TR_1")
                #expect(state.state == (isHeld ? LIVEKIT__STREAM_STATE__PAUSED : LIVEKIT__STREAM_STATE__ACTIVE))
            }
        }
    }

    @Test("Who may not receive a track any more, and who may again, is notified")
    func trackPermission() throws {
        var translator = EventTranslator(people: [])
        for isAllowed in [false, true] {
            let event = RoomEvent.trackPermission(participant: "PA_1", track: "TR_1", isAllowed: isAllowed)
            let signal = try #require(translator.signals(for: SequencedEvent(sequence: 1, event: event)).first)
            try WireTests.read(signal) { message in
                #expect(message.message_case == LIVEKIT__SIGNAL_RESPONSE__MESSAGE_SUBSCRIPTION_PERMISSION_UPDATE)
                let update = message.subscription_permission_update.pointee
                #expect(String(update.participant_sid) == "PA_1" && String(update.track_sid) == "TR_1")
                #expect((update.allowed != 0) == isAllowed)
            }
        }
    }
}
