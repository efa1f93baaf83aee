import EdgeSupport
import MediaControl
import Primitives
import Rooms
import SDP
import Testing

@testable import ControlAPI

@Suite("Control API: fields of a policy")
struct PolicyFieldTests {
    /// The fields that were looked at.
    private final class Fields {
        var names: Set<String> = []

        /// A document with this field alone changes the rules in force as `change` does, and in nothing else.
        func sets(_ name: String, _ value: String, _ change: (inout RoomPolicy) -> Void) throws {
            names.insert(name)
            var expected = RoomPolicy()
            change(&expected)
            #expect(expected != RoomPolicy(), "\(name): its default would show nothing")
            let text = Array(#"{"\#(name)":\#(value)}"#.utf8)
            let model = try JSONCoding.decode(PolicyModel.self, from: text)
            #expect(model.document.applied(to: RoomPolicy()) == expected, "\(name)")
        }
    }

    @Test("I1: each field of a document sets the rule of its name, and no other")
    func each() throws {
        let fields = Fields()
        try Self.people(fields)
        try Self.media(fields)
        try Self.bandwidth(fields)
        try Self.recording(fields)
        #expect(fields.names == Set(PolicyModel.memberNames))
    }

    private static func people(_ fields: Fields) throws {
        try fields.sets("topology", #""peerToPeer""#) { $0.topology = .peerToPeer }
        try fields.sets("maxParticipants", "7") { $0.maxParticipants = 7 }
        try fields.sets("countsHidden", "true") { $0.countsHidden = true }
        try fields.sets("countsPublishOnly", "false") { $0.countsPublishOnly = false }
        try fields.sets("maxPublishers", "6") { $0.maxPublishers = 6 }
        try fields.sets("publishSources", #"["camera"]"#) { $0.publishSources = [.camera] }
        try fields.sets("moderatorSources", #"["screen"]"#) { $0.moderatorSources = [.screen] }
        try fields.sets("allowMessages", "false") { $0.allowsMessages = false }
        try fields.sets("subscribeRules", #"[{"action":"include","kind":"audio"}]"#) {
            $0.subscribeRules = [SubscribeRule(includes: true, .kind(.audio))]
        }
        try fields.sets("requireEncryption", "true") { $0.requiresEncryption = true }
        try fields.sets("waitingRoom", "true") { $0.waitingRoom = true }
        try fields.sets("lockRight", #""members""#) { $0.lockRight = .members }
        try fields.sets("duplicateIdentity", #""refuse""#) { $0.duplicateIdentity = .refuse }
        try fields.sets("maxDurationSeconds", "70") { $0.maxDuration = .seconds(70) }
        try fields.sets("maxStaySeconds", "80") { $0.maxStay = .seconds(80) }
        try fields.sets("endStayWithToken", "true") { $0.endsStayWithToken = true }
        try fields.sets("emptyTimeoutSeconds", "90") { $0.emptyTimeout = .seconds(90) }
        try fields.sets("departureTimeoutSeconds", "10") { $0.departureTimeout = .seconds(10) }
    }

    private static func media(_ fields: Fields) throws {
        try fields.sets("audioCodecs", #"["red"]"#) { $0.audioCodecs = [.red] }
        try fields.sets("videoCodecs", #"["av1","vp8"]"#) { $0.videoCodecs = [.av1, .vp8] }
        try fields.sets("h264Profiles", #"["high"]"#) { $0.h264Profiles = [.high] }
        try fields.sets("vp9Profiles", "[2]") { $0.vp9Profiles = [2] }
        try fields.sets("av1Profiles", "[1]") { $0.av1Profiles = [1] }
        try fields.sets("audioOnly", "true") { $0.audioOnly = true }
        try fields.sets("maxVideoBitrate", "20000") { $0.maxVideoBitrate = .bitsPerSecond(20_000) }
        try fields.sets("allowSimulcast", "false") { $0.allowsSimulcast = false }
        try fields.sets("minPlayoutDelayMilliseconds", "200") { $0.minPlayoutDelay = .milliseconds(200) }
        try fields.sets("maxPlayoutDelayMilliseconds", "300") { $0.maxPlayoutDelay = .milliseconds(300) }
        try fields.sets("maxMicrophones", "3") { $0.audio.maximumMicrophones = 3 }
        try fields.sets("microphoneThreshold", "-45") { $0.audio.microphoneThreshold = -45 }
        try fields.sets("alwaysHeard", #"["ada"]"#) { $0.alwaysHeard = ["ada"] }
        try fields.sets("speakerThreshold", "-40") { $0.audio.voiceThreshold = -40 }
        try fields.sets("maxSpeakers", "2") { $0.audio.maximumSpeakers = 2 }
    }

    private static func bandwidth(_ fields: Fields) throws {
        try fields.sets("bandwidthMode", #""grid""#) { $0.bandwidth.mode = .grid }
        try fields.sets("maxVideoSubscriptions", "4") { $0.bandwidth.maxVideoSubscriptions = 4 }
        try fields.sets("maxDownlinkBitrate", "30000") { $0.bandwidth.maxDownlinkBitrate = .bitsPerSecond(30_000) }
        try fields.sets("maxUplinkBitrate", "40000") { $0.bandwidth.maxUplinkBitrate = .bitsPerSecond(40_000) }
        try fields.sets("shortage", #""pause""#) { $0.bandwidth.shortage = .pause }
        // It has a meaning with this shortage only.
        try fields.sets("oversendBitrate", #"5000,"shortage":"oversend""#) {
            $0.bandwidth.shortage = .oversend(.bitsPerSecond(5_000))
        }
    }

    private static func recording(_ fields: Fields) throws {
        try fields.sets("recording", #""fromStart""#) { $0.recording = .fromStart }
        try fields.sets("recordingSources", #"["microphone"]"#) { $0.recordingSources = [.microphone] }
        try fields.sets("recordingParticipants", #"["bob"]"#) { $0.recordingParticipants = ["bob"] }
        try fields.sets("recordingFiles", #""room""#) { $0.recordingOptions.files = .room }
        try fields.sets("recordingSegmentSeconds", "60") { $0.recordingOptions.segmentLength = .seconds(60) }
        try fields.sets("recordingSegmentMegabytes", "5") { $0.recordingOptions.segmentBytes = 5 << 20 }
        try fields.sets("recordingFileName", #""{room}-{time}""#) { $0.recordingOptions.fileName = "{room}-{time}" }
    }
}
