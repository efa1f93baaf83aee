import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import MediaEngine

@Suite("Packet capture in the engine")
struct CaptureTests {
    private func packets(_ harness: EngineHarness, of client: TestClient) -> [CapturedPackets.Packet] {
        var found: [CapturedPackets.Packet] = []
        for one in harness.engine.report(.captures([client.id]))?.captures ?? [] { one.forEach { found.append($0) } }
        return found
    }

    /// Alice speaks for a second, and Bob hears it.
    private func speak(_ harness: EngineHarness, _ alice: TestClient, _ microphone: inout OpusEncoder) {
        for _ in 0..<50 {
            harness.send(microphone.packet(), from: alice)
            harness.run(for: .milliseconds(20))
        }
    }

    @Test(
        "A captured peer's RTP and RTCP are copied in clear text in both directions; others' are not",
        arguments: [false, true])
    func bothDirections(keepsPayload: Bool) throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let alice = harness.addClient(room: Session.room), bob = harness.addClient(room: Session.room)
        harness.apply(.addTrack(Session.audio(1, of: alice)))
        harness.apply(.subscribe(Session.subscribe(1, to: 1, by: bob, kind: .audio)))
        var microphone = OpusEncoder(ssrc: 0x100)
        speak(harness, alice, &microphone)
        #expect(packets(harness, of: alice).isEmpty, "nobody asked")
        for client in [alice, bob] {
            harness.apply(.setCapture(client.id, CaptureSettings(keepsPayload: keepsPayload)))
        }
        let sent = microphone.packet()
        harness.send(sent, from: alice)
        // Long enough for a receiver report.
        for _ in 0..<6 { speak(harness, alice, &microphone) }
        let ofAlice = packets(harness, of: alice), ofBob = packets(harness, of: bob)
        let received = ofAlice.filter { !$0.isSent && !$0.isRTCP }
        #expect(received.count == 301 && ofAlice.allSatisfy { $0.isRTCP || !$0.isSent })
        #expect(received[0].length == sent.count)
        let header = try #require(sent.withUnsafeBytes { RTPHeader($0.bytes) }).payloadOffset
        #expect(Array(received[0].bytes) == Array(sent.prefix(keepsPayload ? sent.count : header)))
        let forwarded = ofBob.filter { $0.isSent && !$0.isRTCP }
        #expect(forwarded.count == 301 && forwarded.allSatisfy { $0.bytes[$0.bytes.startIndex + 1] & 0x7f == 109 })
        #expect(ofAlice.contains { $0.isSent && $0.isRTCP && $0.bytes.count == $0.length }, "receiver reports, whole")
        #expect(zip(ofBob, ofBob.dropFirst()).allSatisfy { $0.time <= $1.time })
        #expect(packets(harness, of: bob).isEmpty, "each packet is reported once")
        harness.apply(.setCapture(bob.id, nil))
        speak(harness, alice, &microphone)
        #expect(packets(harness, of: bob).isEmpty && !packets(harness, of: alice).isEmpty)
    }

    @Test("What finds no room is counted, and a capture outlives its peer until it is stopped")
    func bounds() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let alice = harness.addClient(room: Session.room)
        harness.apply(.addTrack(Session.video(1, of: alice)))
        harness.apply(.setCapture(alice.id, CaptureSettings(keepsPayload: true)))
        var camera = VP8Encoder(ssrc: 0x100)
        var count: UInt64 = 0
        for _ in 0..<600 {
            for packet in camera.frame(filler: 1_000) {
                harness.send(packet, from: alice)
                count += 1
            }
            harness.run(for: .milliseconds(5))
        }
        harness.apply(.removePeer(alice.id))
        let report = try #require(harness.engine.report(.captures([alice.id]))?.captures.first)
        var kept: UInt64 = 0
        report.forEach { if !$0.isRTCP { kept += 1 } }
        #expect(report.dropped > 0 && kept + report.dropped >= count)
        harness.apply(.setCapture(alice.id, nil))
        #expect(harness.engine.report(.captures([alice.id]))?.captures == [])
    }
}
