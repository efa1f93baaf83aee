import MediaControl
import Primitives
import RTP
import Testing

@testable import Forwarding
@testable import MediaEngine

@Suite("Feedback that requests more than its sender received")
struct FeedbackFloodTests {
    typealias Stage = FeedbackTests.Stage

    /// Transport-wide feedback about `count` packets, none of which came.
    private func nothingCame(_ count: Int, from base: UInt16 = 0) -> [UInt8] {
        var chunks: [UInt8] = [], left = count
        while left > 0 {
            let run = min(left, 0x1fff)
            chunks += [UInt8(run >> 8), UInt8(run & 0xff)]
            left -= run
        }
        if chunks.count % 4 != 0 { chunks += [0, 0] }
        let head: [UInt8] = [0x8f, 205, 0, UInt8(4 + chunks.count / 4), 0, 0, 0, 1, 0, 0, 0, 2]
        return head + [base, UInt16(count)].flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] } + [0, 0, 1, 0] + chunks
    }

    /// Asks for 17 numbers with each of `entries`.
    private func everything(_ entries: Int) -> [UInt8] {
        let words = UInt16(2 + entries)
        let head: [UInt8] = [0x81, 205, UInt8(words >> 8), UInt8(words & 0xff), 0, 0, 0, 1, 0xa0, 0, 0, 1]
        let requests = (0..<entries).flatMap { (entry: Int) -> [UInt8] in
            let first = 17 * entry
            return [UInt8(first >> 8), UInt8(first & 0xff), 0xff, 0xff]
        }
        return head + requests
    }

    private func downlink(of client: TestClient, _ engine: WorkerEngine) -> UnsafeMutablePointer<Downlink> {
        guard let peer = engine.whereabouts.owner(of: client.address),
            let downlink = engine.tables.peers[peer].pointee.downlink
        else {
            preconditionFailure("it is connected")
        }
        return downlink
    }

    @Test("F8: feedback makes the engine look up at most 8,192 numbers, and then eight per packet sent")
    func lookups() throws {
        let stage = try Stage(viewers: 1)
        let viewer = stage.viewers[0]
        func drops(_ reason: DropReason) -> UInt64 { stage.harness.engine.statistics.drops[reason] }
        stage.film(10, keyframeFirst: true)
        // 29 feedbacks of 40 bytes are 1.9 million packets.
        stage.harness.sendRTCP((0..<29).flatMap { _ in nothingCame(65_535) }, from: viewer)
        #expect(drops(.rtcpUnexpected) == 29)
        // Of 58 feedbacks of 24 bytes, a log's length each, one is taken: 4,096 numbers and 4 for itself.
        stage.harness.sendRTCP((0..<58).flatMap { _ in nothingCame(4_096) }, from: viewer)
        #expect(drops(.rtcpUnexpected) == 29 + 57)
        // 5,899 numbers in 1,400 bytes: 240 entries find 4,092 left.
        stage.harness.sendRTCP(everything(347), from: viewer)
        #expect(stage.harness.engine.statistics.nacksReceived == 347 * 17)
        #expect(drops(.retransmissionThrottled) == 107 * 17)
        // Honest feedback goes on.
        stage.film(10)
        let before = drops(.rtcpUnexpected) + drops(.rtcpMalformed)
        stage.harness.sendRTCP(nothingCame(30), from: viewer)
        #expect(drops(.rtcpUnexpected) + drops(.rtcpMalformed) == before)
    }

    @Test("G3: without an estimate there are as many retransmissions as packets, and at most a second's at once")
    func repeats() throws {
        let stage = try Stage(viewers: 1)
        let viewer = stage.viewers[0]
        stage.film(30, keyframeFirst: true)
        let engine = stage.harness.engine
        downlink(of: viewer, engine).pointee.measured(.milliseconds(1), at: stage.harness.now)
        func askForAll() {
            let last = viewer.rtp.last { $0.header.ssrc == 0xa000_0001 }!.header.sequenceNumber
            stage.harness.sendRTCP(from: viewer) {
                $0.beginNACK(senderSSRC: 1, mediaSSRC: 0xa000_0001)
                for back in (0..<50).reversed() { $0.addMissing(last &- UInt16(back)) }
            }
            stage.harness.run(for: .milliseconds(10))
        }
        for _ in 0..<100 { askForAll() }
        #expect(engine.statistics.retransmissionsSent == 1_024)
        stage.film(10)
        askForAll()
        #expect(engine.statistics.retransmissionsSent == 1_024 + 30)
    }
}
