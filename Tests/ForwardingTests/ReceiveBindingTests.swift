import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import Forwarding

@Suite("Receive: binding of streams to tracks")
struct ReceiveBindingTests {
    private func packet(_ ssrc: UInt32, _ number: UInt16 = 1, mid: String? = nil, rid: String? = nil, type: UInt8 = 96)
        -> TestPacket
    {
        var packet = TestPacket(ssrc: ssrc, payloadType: type, sequence: number)
        if let mid { packet.extensions.append((4, Array(mid.utf8))) }
        if let rid { packet.extensions.append((10, Array(rid.utf8))) }
        if type == 111 { packet.payload = [0x78, 1] }
        return packet
    }

    private func repair(_ ssrc: UInt32, _ number: UInt16, of rid: String) -> TestPacket {
        var repeated = packet(ssrc, number, mid: "1").retransmitted(ssrc: ssrc, payloadType: 97, sequence: 1)
        repeated.extensions.append((11, Array(rid.utf8)))
        return repeated
    }

    private func layer(_ result: IngestResult) -> Int? {
        guard case .stored(let layer, _) = result else { return nil }
        return layer
    }

    @Test("Simulcast layers are bound by mid and rid of the first packets, and stay bound")
    func simulcast() {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.microphone(), at: at(0))
        _ = harness.uplink.addTrack(.camera(rids: ["h", "q", "f"]), at: at(0))
        #expect(layer(harness.receive(packet(1, mid: "1", rid: "q"), at: at(0))) == 1)
        #expect(layer(harness.receive(packet(2, mid: "1", rid: "h"), at: at(0))) == 0)
        #expect(layer(harness.receive(packet(3, mid: "1", rid: "f"), at: at(0))) == 2)
        #expect(layer(harness.receive(packet(1, 2), at: at(1))) == 1)
        #expect(layer(harness.receive(packet(2, 2), at: at(1))) == 0)
        #expect(harness.receive(packet(4), at: at(2)) == .dropped(.rtpUnknownStream))
        #expect(harness.receive(packet(5, mid: "1", rid: "x"), at: at(2)) == .dropped(.rtpUnknownStream))
        #expect(harness.receive(packet(6, mid: "9", rid: "q"), at: at(2)) == .dropped(.rtpUnknownStream))
        let track = harness.uplink.tracks[1]!
        #expect((0..<3).map { track.rank(ofLayer: $0) } == [1, 0, 2], "q < h < f whatever the order in the SDP")
    }

    @Test("Packets and retransmissions of a layer that was not taken, such as a fourth, are dropped")
    func fourthLayer() {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.camera(rids: ["q", "h", "f"]), at: at(0))
        for (ssrc, rid) in [(1, "q"), (2, "h"), (3, "f")] as [(UInt32, String)] {
            #expect(layer(harness.receive(packet(ssrc, mid: "1", rid: rid), at: at(0))) != nil)
        }
        #expect(layer(harness.receive(repair(11, 2, of: "q"), at: at(1))) == 0)
        #expect(layer(harness.receive(repair(12, 2, of: "h"), at: at(1))) == 1)
        #expect(harness.receive(packet(4, mid: "1", rid: "x"), at: at(2)) == .dropped(.rtpUnknownStream))
        #expect(harness.receive(repair(14, 2, of: "x"), at: at(2)) == .dropped(.rtpUnknownStream))
        #expect(layer(harness.receive(repair(13, 2, of: "f"), at: at(3))) == 2)
    }

    @Test("Where no layers were agreed on, the first one that comes is taken, and another one once that has stopped")
    func layersNotAgreedOn() {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.camera(), at: at(0))
        #expect(layer(harness.receive(packet(1, mid: "1", rid: "q"), at: at(0))) == 0)
        #expect(harness.receive(packet(2, mid: "1", rid: "h"), at: at(1)) == .dropped(.rtpUnknownStream))
        #expect(layer(harness.receive(packet(1, 2), at: at(2))) == 0)
        #expect(harness.receive(repair(12, 3, of: "h"), at: at(3)) == .dropped(.rtpUnknownStream))
        #expect(layer(harness.receive(repair(11, 3, of: "q"), at: at(3))) == 0)
        #expect(layer(harness.receive(packet(2, 2, mid: "1", rid: "h"), at: at(1_100))) == 0)
        #expect(harness.receive(packet(1, 4, mid: "1", rid: "q"), at: at(1_101)) == .dropped(.rtpUnknownStream))
    }

    @Test(
        "Before their sizes are known, layers rank by their names: h is half beside q and f, and high beside m and l",
        arguments: [
            (["q", "h", "f"], [0, 1, 2]), (["f", "h", "q"], [2, 1, 0]), (["h", "m", "l"], [2, 1, 0]),
            (["l", "m", "h"], [0, 1, 2]), (["h", "q"], [1, 0]), (["h", "l"], [1, 0]), (["h", "m"], [1, 0]),
            (["high", "medium", "low"], [2, 1, 0]), (["a", "b", "c"], [0, 1, 2]),
        ] as [([String], [Int])])
    func ranksByName(rids: [String], ranks: [Int]) throws {
        let track = try #require(UplinkHarness().uplink.addTrack(.camera(rids: rids), at: at(0)))
        #expect(rids.indices.map { track.rank(ofLayer: $0) } == ranks)
    }

    @Test("A rid alone binds a stream if only one track has it")
    func ridWithoutMid() {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.camera(rids: ["q", "h"]), at: at(0))
        #expect(layer(harness.receive(packet(1, rid: "h"), at: at(0))) == 1)
        _ = harness.uplink.addTrack(.camera(id: 5, mid: "2", rids: ["q", "h"]), at: at(0))
        #expect(harness.receive(packet(2, rid: "q"), at: at(0)) == .dropped(.rtpUnknownStream))
    }

    @Test("Without any extension the payload type binds a stream if only one track has it (ffmpeg, GStreamer)")
    func payloadType() {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.microphone(), at: at(0))
        _ = harness.uplink.addTrack(.camera(), at: at(0))
        #expect(layer(harness.receive(packet(7), at: at(0))) == 0)
        #expect(harness.lastTrack?.description.kind == .video)
        #expect(layer(harness.receive(packet(8, type: 111), at: at(0))) == 0)
        #expect(harness.lastTrack?.description.kind == .audio)
        let repair = TestPacket(sequence: 0).retransmitted(ssrc: 9, payloadType: 97, sequence: 1)
        #expect(layer(harness.receive(repair, at: at(1))) == 0)
        // A second unknown stream of the same type does not take the place of a living one …
        #expect(harness.receive(packet(10), at: at(10)) == .dropped(.rtpUnknownStream))
        // … but of one that has stopped.
        #expect(layer(harness.receive(packet(10), at: at(2000))) == 0)
    }

    @Test("SSRCs in the SDP are bound at once; removing the track unbinds them")
    func announced() {
        let harness = UplinkHarness()
        let description = TrackDescription.camera(
            encodings: [EncodingDescription(ssrc: 21, rtxSSRC: 22), EncodingDescription(ssrc: 31, rtxSSRC: 32)])
        _ = harness.uplink.addTrack(description, at: at(0))
        #expect(layer(harness.receive(packet(31), at: at(0))) == 1)
        #expect(layer(harness.receive(packet(21), at: at(0))) == 0)
        harness.uplink.removeTrack(description.id)
        #expect(harness.receive(packet(21, 2), at: at(1)) == .dropped(.rtpUnknownStream))
    }

    @Test("A15: another SSRC with the same mid replaces the source of the layer; output numbers continue")
    func replacedSource() throws {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.camera(), at: at(0))
        harness.receive(packet(1, 50_000, mid: "1"), at: at(0))
        harness.receive(packet(1, 50_001), at: at(10))
        guard case .stored(0, let sequence) = harness.receive(packet(2, 100, mid: "1"), at: at(20)) else {
            Issue.record("the new source was not taken")
            return
        }
        #expect(sequence > 0x10000 + 50_001)
        let record = try #require(harness.lastTrack?.stored(sequence))
        #expect(record.flags.isSuperset(of: [.discontinuity, .newTimeline]))
        // What the former source sent is not what this one lost.
        let layers = try #require(harness.uplink.tracks[0]).statistics(at: at(30)).layers
        #expect(layers[0].packetsLost == 0)
        #expect(harness.receive(packet(1, 50_002), at: at(30)) == .dropped(.rtpUnknownStream))
        #expect(harness.uplink.tracks.count == 1)
    }

    @Test("A source that an update announces in place of another has lost nothing before its first packet")
    func announcedSource() throws {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.camera(encodings: [EncodingDescription(ssrc: 21)]), at: at(0))
        for number in 0..<100 as Range<UInt16> { harness.receive(packet(21, number), at: at(Double(number))) }
        harness.run(to: at(1_500))
        harness.uplink.updateTrack(.camera(encodings: [EncodingDescription(ssrc: 41)]))
        let before = harness.sent.count
        harness.run(to: at(4_000))
        #expect(
            !harness.packets.dropFirst(before).contains { if case .receiverReport = $0.packet { true } else { false } })
        let layers = try #require(harness.uplink.tracks[0]).statistics(at: at(4_000)).layers
        #expect(layers[0].packetsLost == 0)
    }

    @Test("What one source lost and had repaired hides nothing that the next one loses")
    func lossOfSources() throws {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(
            .camera(encodings: [EncodingDescription(ssrc: 1, rtxSSRC: 2)]), at: at(0))
        for number in 0..<100 as Range<UInt16> where number % 10 != 5 {
            harness.receive(packet(1, number), at: at(Double(number)))
        }
        for number in stride(from: UInt16(5), to: 100, by: 10) {
            harness.receive(packet(1, number).retransmitted(ssrc: 2, payloadType: 97, sequence: number), at: at(150))
        }
        func lost() throws -> UInt64 {
            try #require(harness.uplink.tracks[0]).statistics(at: at(400)).layers[0].packetsLost
        }
        #expect(try lost() == 0)
        for number in 0..<100 as Range<UInt16> where number % 20 != 5 {
            harness.receive(packet(100, number, mid: "1"), at: at(200 + Double(number)))
        }
        #expect(try lost() == 5)
    }

    @Test("Successive sources with their own retransmission streams are reported, and leave no state behind")
    func manySources() {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.camera(), at: at(0))
        _ = harness.uplink.consumeSourceChanges()
        var changes: [SourceChange] = []
        for index in 0..<400 as Range<UInt32> {
            let ssrc = 1_000 + 2 * index, now = at(Double(index) * 20)
            #expect(layer(harness.receive(packet(ssrc, 10, mid: "1"), at: now)) == 0)
            var lost = packet(ssrc, 11)
            lost.extensions = [(4, Array("1".utf8))]
            let repair = lost.retransmitted(ssrc: ssrc + 1, payloadType: 97, sequence: 1)
            #expect(layer(harness.receive(repair, at: now)) == 0, "retransmissions of source \(index)")
            changes += harness.uplink.consumeSourceChanges()
        }
        let expected = (0..<400 as Range<UInt32>).flatMap { index -> [SourceChange] in
            let ssrc = 1_000 + 2 * index
            let reported = [ssrc, ssrc + 1].flatMap { now in
                (index > 0 ? [SourceChange(ssrc: now - 2, isReceived: false)] : [])
                    + [SourceChange(ssrc: now, isReceived: true)]
            }
            return reported
        }
        #expect(changes == expected)
        // A source that comes back is received again.
        harness.receive(packet(1_000, 40, mid: "1"), at: at(9_000))
        #expect(harness.uplink.consumeSourceChanges().last == SourceChange(ssrc: 1_000, isReceived: true))
        harness.uplink.removeTrack(TrackDescription.camera().id)
        let gone = harness.uplink.consumeSourceChanges()
        #expect(Set(gone.map(\.ssrc)) == [1_000, 1_799] && !gone.contains { $0.isReceived })
    }

    @Test("Padding and unknown payload types become gaps to close; neither is stored")
    func gaps() throws {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.camera(), at: at(0))
        harness.receive(packet(1, 10, mid: "1"), at: at(0))
        var padding = packet(1, 11)
        padding.payload = []
        padding.padding = 224
        #expect(harness.receive(padding, at: at(1)) == .gap(layer: 0, sequence: 0x10000 + 11, .rtpPaddingOnly))
        #expect(
            harness.receive(packet(1, 12, type: 50), at: at(2))
                == .gap(layer: 0, sequence: 0x10000 + 12, .rtpUnknownPayloadType))
        var padded = packet(1, 13)
        padded.padding = 30
        harness.receive(padded, at: at(3))
        let track = try #require(harness.lastTrack)
        #expect(track.arrivals.map(\.sequence) == [10, 11, 12, 13].map { 0x10000 + $0 })
        #expect(track.arrivals.map(\.isGap) == [false, true, true, false])
        #expect(track.storedBytes(0x10000 + 13) == packet(1, 13).bytes, "stored without padding")
        track.endTurn()
        #expect(track.arrivals.isEmpty)
    }

    @Test("Malformed packets are dropped with a reason")
    func malformed() {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.camera(), at: at(0))
        #expect(harness.receive([0x80, 96, 0], at: at(0)) == .dropped(.rtpMalformed))
        #expect(harness.receive([UInt8](repeating: 0x90, count: 13), at: at(0)) == .dropped(.rtpMalformed))
        #expect(harness.receive(packet(1, 1, type: 99), at: at(0)) == .dropped(.rtpUnknownStream))
        harness.receive(packet(1, 1), at: at(0))
        var empty = packet(1, 2)
        empty.payload = [0x90]
        #expect(harness.receive(empty, at: at(1)) == .gap(layer: 0, sequence: 0x10000 + 2, .payloadMalformed))
        #expect(harness.receive([UInt8](repeating: 0x80, count: 2048), at: at(2)) == .dropped(.rtpUnknownStream))
    }

    @Test("C6: packets of a muted track are dropped at once; after unmuting the numbers continue without a gap")
    func mute() throws {
        let harness = UplinkHarness()
        _ = harness.uplink.addTrack(.camera(), at: at(0))
        harness.receive(packet(1, 10), at: at(0))
        harness.uplink.setMuted(TrackID(1), true)
        for number in UInt16(11)..<20 {
            #expect(harness.receive(packet(1, number), at: at(Double(number))) == .dropped(.trackMuted))
        }
        harness.uplink.setMuted(TrackID(1), false)
        harness.receive(packet(1, 20), at: at(30))
        let track = try #require(harness.lastTrack)
        let sequences: [Int64] = [0x1000a, 0x10014]
        #expect(track.arrivals.map { Int64($0.sequence) } == sequences)
        let record = try #require(track.stored(0x10000 + 20))
        #expect(!record.flags.contains(.discontinuity), "pictures begin anew with a keyframe")
        #expect(track.layer(0).pointee.lastKeyframe == nil)
    }

    @Test("Tracks beyond the limit are refused, and freed slots are reused")
    func trackLimit() {
        let harness = UplinkHarness()
        for id in 0..<MediaLimits.tracksPerParticipant {
            #expect(harness.uplink.addTrack(.camera(id: UInt64(id), mid: "\(id)"), at: at(0)) != nil)
        }
        #expect(harness.uplink.addTrack(.camera(id: 99, mid: "99"), at: at(0)) == nil)
        harness.uplink.removeTrack(TrackID(5))
        #expect(harness.uplink.addTrack(.camera(id: 99, mid: "99"), at: at(0)) != nil)
    }

    @Test("The table keeps its limit of streams when new SSRCs arrive in a row, and evicts old ones")
    func table() {
        var table = SSRCTable()
        var isFull = false
        for ssrc in UInt32(0)..<400 {
            if !table.bind(ssrc, to: StreamBinding(track: Int(ssrc % 32), layer: 1, isRTX: ssrc % 2 == 0)) {
                isFull = true
            }
        }
        let count = table.count
        #expect(isFull && count == SSRCTable.limit)
        let binding = table[77]
        #expect(binding == StreamBinding(track: 77 % 32, layer: 1, isRTX: false))
        table.removeAll { _, binding in binding.isRTX }
        let gone = table[78], kept = table[79]
        #expect(gone == nil && kept != nil)
    }
}
