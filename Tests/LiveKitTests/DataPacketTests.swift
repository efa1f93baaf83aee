import CLiveKitProtocol
import Primitives
import RoomService
import Rooms
import Testing

@testable import LiveKit

@Suite("Messages on data channels")
struct DataPacketTests {
    private func packet(_ fill: (MessageArena, inout Livekit__DataPacket) -> Void) -> [UInt8] {
        let arena = MessageArena()
        return arena.packed(arena.make(livekit__data_packet__init) { fill(arena, &$0) })
    }

    private func decode(_ bytes: [UInt8], label: String = "_reliable") -> RoomMessage? {
        DataPackets.codec.decode(label, DataPayload(isText: false, bytes: bytes))
    }

    @Test(
        "What an application sends is a message with a topic to everybody, or to whom it names in the packet, or in its content as older SDKs do"
    )
    func user() throws {
        for (outer, inner, expected) in [([], [], nil), (["bob"], ["carl"], ["bob"]), ([], ["carl"], ["carl"])]
            as [([String], [String], [String]?)]
        {
            let bytes = packet { arena, packet in
                packet.n_destination_identities = outer.count
                packet.destination_identities = arena.list(outer.map(arena.text))
                packet.value_case = LIVEKIT__DATA_PACKET__VALUE_USER
                packet.user = arena.make(livekit__user_packet__init) { user in
                    user.payload = arena.bytes([1, 0, 2])
                    user.optional_topic_case = LIVEKIT__USER_PACKET__OPTIONAL_TOPIC_TOPIC
                    user.topic = arena.text("chat")
                    user.n_destination_identities = inner.count
                    user.destination_identities = arena.list(inner.map(arena.text))
                }
            }
            let message = try #require(decode(bytes, label: "_lossy"))
            var wanted = RoomMessage(topic: "chat", content: .binary([1, 0, 2]), isReliable: false, to: expected)
            wanted.original = RoomMessage.WireForm("livekit", bytes)
            #expect(message == wanted)
        }
    }

    @Test(
        "Content of another kind, known here or not, is passed on byte for byte, and its sender is who the server says, not who the packet says"
    )
    func foreign() throws {
        // Field 99, a text, which no version of the schema has.
        let unknown: [UInt8] = [0x9a, 0x06, 0x02, 0x68, 0x69]
        let bytes =
            packet { arena, packet in
                packet.participant_identity = arena.text("mallory")
                packet.sequence = 7
            } + unknown
        var message = try #require(decode(bytes))
        #expect(message.content == .foreign("livekit", bytes))
        #expect(message.to == nil)
        message.participant = "PA_1"
        message.identity = "ada"
        let sent = try #require(DataPackets.codec.encode(message))
        #expect(!sent.isText)
        #expect(sent.bytes.count >= unknown.count && Array(sent.bytes.suffix(unknown.count)) == unknown)
        guard let read = UnpackedMessage(sent.bytes, livekit__data_packet__unpack) else {
            Issue.record("what is sent is a packet")
            return
        }
        let (identity, sid, sequence) = read.read {
            (String($0.participant_identity), String($0.participant_sid), $0.sequence)
        }
        #expect(identity == "ada" && sid == "PA_1" && sequence == 7)
    }

    @Test(
        "What an application sends keeps its id, times, nonce, sequence and unknown fields between these SDKs; sender and kind are the server's"
    )
    func userKeepsWhatItCarries() throws {
        let unknown: [UInt8] = [0x9a, 0x06, 0x02, 0x68, 0x69]
        let bytes =
            packet { arena, packet in
                packet.participant_sid = arena.text("PA_mallory")
                packet.sequence = 70_000
                packet.value_case = LIVEKIT__DATA_PACKET__VALUE_USER
                packet.user = arena.make(livekit__user_packet__init) { user in
                    user.participant_identity = arena.text("mallory")
                    user.payload = arena.bytes([1, 0, 2])
                    user.optional_id_case = LIVEKIT__USER_PACKET__OPTIONAL_ID_ID
                    user.id = arena.text("message-1")
                    user.optional_start_time_case = LIVEKIT__USER_PACKET__OPTIONAL_START_TIME_START_TIME
                    user.start_time = 0
                    user.optional_end_time_case = LIVEKIT__USER_PACKET__OPTIONAL_END_TIME_END_TIME
                    user.end_time = 1 << 40
                    user.nonce = arena.bytes([9, 8, 7])
                }
            } + unknown
        var message = try #require(decode(bytes, label: "_lossy"))
        message.participant = "PA_1"
        message.identity = "ada"
        let sent = try #require(DataPackets.codec.encode(message))
        #expect(sent.bytes.count >= unknown.count && Array(sent.bytes.suffix(unknown.count)) == unknown)
        let read = try #require(Read(sent.bytes))
        #expect(read.sequence == 70_000 && read.isLossy)
        #expect(read.senders == ["PA_1", "ada", "PA_1", "ada"])
        #expect(read.payload == [1, 0, 2] && read.nonce == [9, 8, 7] && read.id == "message-1")
        #expect(read.times == [0, 1 << 40] && !read.hasTopic)
        // A member of another protocol gets the content alone.
        #expect(message.content == .binary([1, 0, 2]))
    }

    @Test("A text with a NUL in it is passed on as a whole: the payload of a call, and the topic of data")
    func textsWithNUL() throws {
        // Of protobuf-c no text has a NUL: these are written by hand. A call: id "1", method "m", payload "a\0b".
        let call: [UInt8] = [0x52, 11, 0x0a, 1, 0x31, 0x12, 1, 0x6d, 0x1a, 3, 0x61, 0, 0x62]
        // Data: payload 7, topic "a\0b".
        let data: [UInt8] = [0x12, 8, 0x12, 1, 7, 0x22, 3, 0x61, 0, 0x62]
        for bytes in [call, data] {
            var message = try #require(decode(bytes))
            (message.participant, message.identity) = ("PA_1", "ada")
            let sent = try #require(DataPackets.codec.encode(message))
            #expect(Array(sent.bytes.suffix(5)) == Array(bytes.suffix(5)))
            #expect(decode(sent.bytes) != nil)
        }
    }

    /// What is in a packet of an application.
    private struct Read {
        var sequence: UInt32 = 0
        var isLossy = false, hasTopic = false
        var senders: [String] = []
        var payload: [UInt8] = [], nonce: [UInt8] = []
        var id = ""
        var times: [UInt64?] = []

        init?(_ bytes: [UInt8]) {
            guard let message = UnpackedMessage(bytes, livekit__data_packet__unpack),
                let read = message.read({ packet in packet.user.map { Read(packet, $0.pointee) } })
            else { return nil }
            self = read
        }

        private init(_ packet: Livekit__DataPacket, _ user: Livekit__UserPacket) {
            sequence = packet.sequence
            isLossy = packet.kind == LIVEKIT__DATA_PACKET__KIND__LOSSY
            hasTopic = user.optional_topic_case == LIVEKIT__USER_PACKET__OPTIONAL_TOPIC_TOPIC
            senders = [
                packet.participant_sid, packet.participant_identity, user.participant_sid, user.participant_identity,
            ]
            .map { String($0) }
            payload = [UInt8](user.payload)
            nonce = [UInt8](user.nonce)
            id = user.optional_id_case == LIVEKIT__USER_PACKET__OPTIONAL_ID_ID ? String(user.id) : ""
            times = [
                user.optional_start_time_case == LIVEKIT__USER_PACKET__OPTIONAL_START_TIME_START_TIME
                    ? user.start_time : nil,
                user.optional_end_time_case == LIVEKIT__USER_PACKET__OPTIONAL_END_TIME_END_TIME ? user.end_time : nil,
            ]
        }
    }

    @Test("Speakers and metrics that a client claims reach nobody")
    func forNobody() throws {
        for kind in [LIVEKIT__DATA_PACKET__VALUE_SPEAKER, LIVEKIT__DATA_PACKET__VALUE_METRICS] {
            let bytes = packet { arena, packet in
                packet.value_case = kind
                packet.speaker = arena.bytes([10, 0])
            }
            #expect(decode(bytes)?.to == [])
        }
    }

    @Test("Texts and bytes of members that speak another protocol arrive as what an application sends")
    func others() throws {
        for (content, bytes) in [(.text("hé"), Array("hé".utf8)), (.binary([0, 255]), [0, 255])]
            as [(RoomMessage.Content, [UInt8])]
        {
            var message = RoomMessage(topic: "chat", content: content)
            message.participant = "PA_1"
            message.identity = "ada"
            let sent = try #require(DataPackets.codec.encode(message))
            let read = try #require(decode(sent.bytes))
            #expect(read.topic == "chat" && read.content == .binary(bytes) && read.isReliable)
        }
    }

    @Test("A message without a topic has none on the wire: an app would be given an empty one")
    func withoutTopic() throws {
        for (topic, isSent) in [("", false), ("chat", true)] {
            let sent = try #require(DataPackets.codec.encode(RoomMessage(topic: topic, content: .binary([1]))))
            let read = try #require(Read(sent.bytes))
            #expect(read.payload == [1] && read.hasTopic == isSent)
        }
    }

    @Test("The result of a call is read as a whole, with the NULs in it, and so is why it failed")
    func resultsWithNUL() throws {
        // Responses to the call "1", written by hand: the payload "a\0b", and an error of code 1, message "a\0b" and data "c\0d".
        let result: [UInt8] = [0x62, 8, 0x0a, 1, 0x31, 0x12, 3, 0x61, 0, 0x62]
        #expect(decode(result)?.answer == CallAnswer(call: "1", .returned("a\0b")))
        let failure: [UInt8] =
            [0x62, 17, 0x0a, 1, 0x31, 0x1a, 12, 0x08, 1] + [0x12, 3, 0x61, 0, 0x62] + [0x1a, 3, 0x63, 0, 0x64]
        #expect(decode(failure)?.answer == CallAnswer(call: "1", .failed(code: 1, message: "a\0b", data: "c\0d")))
    }

    @Test("What is no packet is refused: a text, bytes that are cut off, a length beyond the end, another channel")
    func malformed() {
        #expect(DataPackets.codec.decode("_reliable", DataPayload(isText: true, bytes: [])) == nil)
        #expect(decode([0x12, 0x7f]) == nil)
        #expect(decode([], label: "_data_track") == nil)
        #expect(decode([0x12, 0xff, 0xff, 0xff, 0xff, 0x0f]) == nil)
    }

    @Test("A packet with a field of number 0, which no receiver could read, is sent to nobody")
    func fieldZero() throws {
        // As a fuzzer found it (Tests/Fuzz/Corpus/LiveKit/field-0): the number's tag is a byte longer than it needs to be.
        let message = try #require(decode([0x62, 0x00, 0x85, 0x00, 0x00, 0x00, 0x00, 0x6f]))
        #expect(DataPackets.codec.encode(message) == nil)
    }

    @Test(
        "A packet with a tag of more than 32 bits, which some readers take for that of its sender or of speakers, is sent to nobody",
        arguments: [
            // The tags of `participant_identity`, `speaker` and `participant_sid`, and one bit beyond the 32.
            [0xa2, 0x80, 0x80, 0x80, 0x10], [0x9a, 0x80, 0x80, 0x80, 0x10], [0x8a, 0x81, 0x80, 0x80, 0x10],
            // That of `participant_identity` within what an application sends.
            [0x12, 9, 0xaa, 0x80, 0x80, 0x80, 0x10],
        ] as [[UInt8]])
    func longTags(tag: [UInt8]) throws {
        let message = try #require(decode(tag + [3, 0x65, 0x76, 0x65]))
        #expect(DataPackets.codec.encode(message) == nil)
    }

    @Test(
        "A call of the application's server comes from a name that can be answered; what replies to it is known by its number"
    )
    func calls() throws {
        let call = DataPackets.call("double", payload: "ab", number: "RPC_1", to: "bob", within: 500)
        #expect(call.to == ["bob"] && call.isReliable)
        let sent = try #require(DataPackets.codec.encode(call))
        guard let unpacked = UnpackedMessage(sent.bytes, livekit__data_packet__unpack) else {
            Issue.record("not a packet")
            return
        }
        unpacked.read { packet in
            #expect(String(packet.participant_identity) == "server")
            #expect(packet.value_case == LIVEKIT__DATA_PACKET__VALUE_RPC_REQUEST)
            #expect(String(packet.rpc_request.pointee.id) == "RPC_1")
        }
        let ack = packet { arena, packet in
            packet.value_case = LIVEKIT__DATA_PACKET__VALUE_RPC_ACK
            packet.rpc_ack = arena.make(livekit__rpc_ack__init) { $0.request_id = arena.text("RPC_1") }
        }
        #expect(decode(ack)?.answer == CallAnswer(call: "RPC_1", .acknowledged))
        let result = packet { arena, packet in
            packet.value_case = LIVEKIT__DATA_PACKET__VALUE_RPC_RESPONSE
            packet.rpc_response = arena.make(livekit__rpc_response__init) { response in
                response.request_id = arena.text("RPC_1")
                response.value_case = LIVEKIT__RPC_RESPONSE__VALUE_PAYLOAD
                response.payload = arena.text("abab")
            }
        }
        #expect(decode(result)?.answer == CallAnswer(call: "RPC_1", .returned("abab")))
        let failure = packet { arena, packet in
            packet.value_case = LIVEKIT__DATA_PACKET__VALUE_RPC_RESPONSE
            packet.rpc_response = arena.make(livekit__rpc_response__init) { response in
                response.request_id = arena.text("RPC_1")
                response.value_case = LIVEKIT__RPC_RESPONSE__VALUE_ERROR
                response.error = arena.make(livekit__rpc_error__init) { error in
                    error.code = 1_400
                    error.message = arena.text("no")
                }
            }
        }
        #expect(decode(failure)?.answer == CallAnswer(call: "RPC_1", .failed(code: 1_400, message: "no", data: "")))
    }

    @Test(
        "A frame of a data track keeps all but its number, which is the room's for who receives it; one that is cut or of another version is none"
    )
    func dataTracks() throws {
        let bytes: [UInt8] = [0x18, 0, 0x12, 0x34, 0, 1, 0, 2, 0, 0, 0, 3, 9, 8]
        var message = try #require(decode(bytes, label: "_data_track"))
        #expect(message.dataTrack == 0x1234 && !message.isReliable)
        message.dataTrack = 0xabcd
        let sent = try #require(DataPackets.codec.encode(message))
        #expect(sent == DataPayload(isText: false, bytes: [0x18, 0, 0xab, 0xcd] + bytes[4...]))
        #expect(decode(Array(bytes.prefix(11)), label: "_data_track") == nil)
        #expect(decode([0x38] + bytes.dropFirst(), label: "_data_track") == nil)
    }
}
