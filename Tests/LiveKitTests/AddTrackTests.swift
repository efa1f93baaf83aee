import CLiveKitProtocol
import MediaControl
import Rooms
import Testing

@testable import LiveKit

@Suite("What LiveKit's clients announce of tracks")
struct AddTrackTests {
    @Test("A track is stereo by its flag, or by the feature that replaces it")
    func stereo() {
        func isStereo(_ flag: Int32, _ features: [Livekit__AudioTrackFeature]) -> Bool? {
            let frame = WireTests.frame { message, arena in
                message.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_ADD_TRACK
                message.add_track = arena.make(livekit__add_track_request__init) { request in
                    request.stereo = flag
                    request.n_audio_features = features.count
                    request.audio_features = arena.numbers(features)
                }
            }
            guard case .addTrack(let request)? = ClientSignal(frame: frame) else { return nil }
            return request.details.isStereo
        }
        #expect(isStereo(0, [LIVEKIT__AUDIO_TRACK_FEATURE__TF_NO_DTX]) == false)
        #expect(isStereo(1, []) == true)
        #expect(isStereo(0, [LIVEKIT__AUDIO_TRACK_FEATURE__TF_STEREO]) == true)
    }

    @Test("Audio is sent with DTX unless the flag, or the feature that replaces it, says otherwise; video never")
    func discontinuousTransmission() throws {
        func details(
            _ type: Livekit__TrackType, _ flag: Int32, _ features: [Livekit__AudioTrackFeature] = []
        ) -> TrackDetails? {
            let frame = WireTests.frame { message, arena in
                message.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_ADD_TRACK
                message.add_track = arena.make(livekit__add_track_request__init) { request in
                    request.type = type
                    request.disable_dtx = flag
                    request.n_audio_features = features.count
                    request.audio_features = arena.numbers(features)
                }
            }
            guard case .addTrack(let request)? = ClientSignal(frame: frame) else { return nil }
            return request.details
        }
        #expect(details(LIVEKIT__TRACK_TYPE__AUDIO, 0)?.usesDTX == true)
        #expect(details(LIVEKIT__TRACK_TYPE__AUDIO, 1)?.usesDTX == false)
        #expect(details(LIVEKIT__TRACK_TYPE__AUDIO, 0, [LIVEKIT__AUDIO_TRACK_FEATURE__TF_NO_DTX])?.usesDTX == false)
        #expect(details(LIVEKIT__TRACK_TYPE__VIDEO, 0)?.usesDTX == false)
        for flag in [0, 1] as [Int32] {
            var track = TrackInfo(
                sid: "TR_1", participant: "PA_1", identity: "ada", name: "", kind: .audio, source: .microphone,
                mid: "0")
            track.details = try #require(details(LIVEKIT__TRACK_TYPE__AUDIO, flag))
            try WireTests.read(.trackPublished(clientID: "c", track)) { message in
                #expect(message.track_published.pointee.track.pointee.disable_dtx == flag)
            }
        }
    }

    @Test("The first two codecs that are known here count, with the client's id of the second where it has one")
    func backupCodec() throws {
        func request(_ cid: String) -> TrackRequest? {
            let frame = WireTests.frame { message, arena in
                message.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_ADD_TRACK
                message.add_track = arena.make(livekit__add_track_request__init) { request in
                    let codecs = [("video/H265", "x"), ("video/VP9", "v"), ("vp8", cid)]
                    request.n_simulcast_codecs = codecs.count
                    request.simulcast_codecs = arena.list(
                        codecs.map { name, id in
                            arena.make(livekit__simulcast_codec__init) { codec in
                                codec.codec = arena.text(name)
                                codec.cid = arena.text(id)
                            }
                        })
                }
            }
            guard case .addTrack(let request)? = ClientSignal(frame: frame) else { return nil }
            return request
        }
        let named = try #require(request("w")), unnamed = try #require(request(""))
        #expect(named.codecs == [.vp9, .vp8] && unnamed.codecs == named.codecs)
        #expect(TrackAnnouncement(named).backupTrackID == "w" && TrackAnnouncement(unnamed).backupTrackID == nil)
    }

    @Test("What a publisher appends to its frames reaches its subscribers' clients as it was announced")
    func frameTrailer() throws {
        let features = [
            LIVEKIT__PACKET_TRAILER_FEATURE__PTF_USER_TIMESTAMP, LIVEKIT__PACKET_TRAILER_FEATURE__PTF_FRAME_ID,
        ]
        let frame = WireTests.frame { message, arena in
            message.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_ADD_TRACK
            message.add_track = arena.make(livekit__add_track_request__init) { request in
                request.n_packet_trailer_features = features.count
                request.packet_trailer_features = arena.numbers(features)
            }
        }
        guard case .addTrack(let request)? = ClientSignal(frame: frame) else {
            Issue.record("the frame announces no track")
            return
        }
        var track = TrackInfo(
            sid: "TR_1", participant: "PA_1", identity: "ada", name: "", kind: .video, source: .camera, mid: "0")
        track.details = request.details
        try WireTests.read(.trackPublished(clientID: "c", track)) { message in
            let shown = message.track_published.pointee.track.pointee
            let passed = (0..<shown.n_packet_trailer_features).map { shown.packet_trailer_features[$0] }
            #expect(passed == features)
        }
    }
}
