import CInstruments
import MediaControl
import Primitives
import Simulation
import TestSupport
import Testing

@testable import MediaEngine

/// In steady state a packet costs no lock, whatever the number of receivers; and no allocation: Tests/InteropTests/test_cost.py counts those in an
/// optimised build, because without the optimiser Swift boxes what it otherwise keeps in registers. Sanitizers bring an allocator of their own, which counts nothing.
private let isCounting = ConditionTrait.enabled(if: cinstruments_is_counting() == 1, "this build's allocator counts")

@Suite("Forwarding without locks", .serialized)
struct LocklessForwardingTests {
    /// What a debug build forwards in a few seconds.
    static let packets = 120_000
    static let receivers = 40

    /// A room of one camera, one microphone and `receivers` subscribers, which discards what is sent: the harness would copy it for its clients.
    private final class QuietRoom {
        let harness: EngineHarness
        let publisher: TestClient
        private var camera = VP8Encoder(ssrc: 0x100)
        private var microphone = OpusEncoder(ssrc: 0x200)
        private var now: MonotonicTime
        private var step = TimeSpan.milliseconds(20)
        private let driver: EngineDriver
        private let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: 2_048, alignment: 64)

        init(receivers: Int) throws {
            var configuration = EngineConfiguration()
            configuration.consentTimeout = .seconds(100_000)
            harness = try EngineHarness(configuration: configuration)
            driver = EngineDriver(harness.engine, bytes: 512 * 1_500)
            harness.apply(.addRoom(Session.room))
            publisher = harness.addClient(room: Session.room)
            harness.apply(.addTrack(Session.video(1, of: publisher)))
            harness.apply(.addTrack(Session.audio(2, of: publisher)))
            for index in 0..<receivers {
                let viewer = harness.addClient(room: Session.room)
                let number = UInt64(index * 2 + 1)
                harness.apply(.subscribe(Session.subscribe(number, to: 1, by: viewer)))
                harness.apply(.subscribe(Session.subscribe(number + 1, to: 2, by: viewer, kind: .audio)))
            }
            now = harness.now
        }

        deinit { slot.deallocate() }

        /// `count` turns of one frame and one packet of audio, protected.
        func turns(_ count: Int, keyframeFirst: Bool) -> [[[UInt8]]] {
            (0..<count).map { index in
                let clear = camera.frame(keyframe: keyframeFirst && index == 0) + [microphone.packet()]
                return clear.map { packet in
                    slot.copyBytes(from: packet)
                    let length = publisher.transport.protectRTP(slot, length: packet.count) ?? 0
                    return Array(slot[..<length])
                }
            }
        }

        /// Lets every check that is due in the next seconds happen, and goes on with a turn each five milliseconds.
        func hurry() {
            step = .seconds(6)
            play(turns(1, keyframeFirst: false))
            step = .milliseconds(5)
        }

        func play(_ turns: [[[UInt8]]]) {
            for turn in turns {
                now = now + step
                for packet in turn {
                    packet.withUnsafeBytes { slot.copyMemory(from: $0) }
                    let datagram = UnsafeMutableRawBufferPointer(rebasing: slot[..<packet.count])
                    driver.receive(datagram, from: publisher.address, at: now) { _ in }
                }
                driver.endTurn(at: now) { _ in }
            }
        }
    }

    @Test("Forwarding takes no lock, with reports, feedback and consent going on", isCounting)
    func nothingIsLocked() throws {
        let room = try QuietRoom(receivers: Self.receivers)
        // Histories and rings grow to a second's packets, and every report is written once.
        room.play(room.turns(300, keyframeFirst: true))
        _ = room.harness.engine.consumeEvents()
        // Consent checks allocate in libnice, once in five seconds a peer: the measured part lasts less.
        room.hurry()
        let turns = room.turns(Self.packets / (4 * Self.receivers), keyframeFirst: false)
        let sent = room.harness.engine.statistics.packetsForwarded
        let before = cinstruments_read()
        room.play(turns)
        let after = cinstruments_read()
        #expect(room.harness.engine.statistics.packetsForwarded - sent == UInt64(Self.packets))
        #expect(after.locks - before.locks == 0)
    }

    @Test("The counter counts arrays, objects and locks of the runtime", isCounting)
    func countsAtAll() {
        let before = cinstruments_read()
        var arrays: [[UInt8]] = []
        for index in 0..<100 { arrays.append([UInt8](repeating: UInt8(index), count: 100)) }
        let after = cinstruments_read()
        #expect(arrays.count == 100)
        #expect(after.allocations - before.allocations >= 100)
    }
}
