import Foundation
import Primitives
import Testing

@testable import LoadGenerator

@Suite("Parts of the load generator")
struct PartsTests {
    @Test("A histogram's quantiles are within 1/32 of the values", arguments: [100, 5_000, 1_000_000, 3_000_000_000])
    func quantiles(_ largest: Int64) {
        var histogram = Histogram()
        for step in 1...1_000 { histogram.add(largest * Int64(step) / 1_000) }
        for quantile in [0.5, 0.9, 0.99] {
            let exact = Double(largest) * quantile
            #expect(abs(Double(histogram.quantile(quantile)) - exact) <= exact / 16 + 1)
        }
        #expect(histogram.maximum == largest && histogram.count == 1_000)
    }

    @Test("Timers fire once, in their millisecond, whatever the order in which they were set")
    func timers() {
        var wheel = TimingWheel(now: 0)
        let times: [Int64] = [5_000_000, 1_200_000, 900_000_000, 5_100_000]
        for (key, time) in times.enumerated() { wheel.schedule(UInt64(key), at: time) }
        var due: [UInt64] = []
        wheel.advance(to: 5_000_000, into: &due)
        #expect(due == [1, 0])
        #expect(wheel.nextDeadline(now: 5_000_000, limit: 20_000_000) == 6_000_000)
        wheel.advance(to: 6_000_000, into: &due)
        #expect(due == [3])
        wheel.advance(to: 899_000_000, into: &due)
        #expect(due.isEmpty)
        wheel.advance(to: 900_000_000, into: &due)
        #expect(due == [2])
    }

    @Test(
        "Timers of independent peers fire within 100 us of their own times, those on a shared grid within 1 ms",
        arguments: [
            PeerTimers.independent, .shared,
        ])
    func slots(_ timers: PeerTimers) {
        var wheel = TimingWheel(now: 0, slotNanoseconds: timers.slotNanoseconds)
        var random = RandomSource(seed: 11)
        let times = (0..<500).map { _ in Int64(random.next() % 3_000_000_000) }
        for (key, time) in times.enumerated() { wheel.schedule(UInt64(key), at: time) }
        let limit: Int64 = timers == .independent ? 100_000 : 1_000_000
        var fired = 0
        var now: Int64 = 0
        var due: [UInt64] = []
        while now < 3_100_000_000 {
            now = wheel.nextDeadline(now: now, limit: 20_000_000)
            wheel.advance(to: now, into: &due)
            for key in due { #expect((0...limit).contains(now - times[Int(key)])) }
            fired += due.count
        }
        #expect(fired == times.count)
    }

    @Test("A trace is read back, and every flipped bit of it is detected")
    func traces() {
        let trace = Trace(stream: 7, counter: 123_456, time: 1 << 50)
        var bytes = [UInt8](repeating: 0, count: Trace.length)
        bytes.withUnsafeMutableBytes { trace.write(to: $0.baseAddress!) }
        #expect(bytes.withUnsafeBytes { Trace($0.baseAddress!) } == trace)
        for bit in 0..<(8 * Trace.length) {
            var damaged = bytes
            damaged[bit / 8] ^= 1 << (bit % 8)
            #expect(damaged.withUnsafeBytes { Trace($0.baseAddress!) } == nil, "bit \(bit)")
        }
    }

    @Test("Video is packetized into payloads that fit, with the trace whole in the last one; it starts with a keyframe")
    func videoLoop() throws {
        let encoded = try EncodedLoop.video(
            .vp8, width: 320, height: 180, framesPerSecond: 15, kilobitsPerSecond: 500, seconds: 2)
        let loop = PacketLoop(vp8: encoded)
        #expect(loop.frames.count == 30 && encoded.frames[0].isKey && !encoded.frames[1].isKey)
        for (frame, range) in zip(encoded.frames, loop.frames) {
            var joined: [UInt8] = []
            for packet in loop.packets[range] {
                #expect(packet.length <= PacketLoop.maximumPayload)
                joined += loop.memory[(packet.offset + packet.descriptorLength)..<(packet.offset + packet.length)]
            }
            #expect(loop.packets[range.upperBound - 1].endsFrame)
            #expect(Array(joined.dropLast(Trace.length)) == frame.bytes)
            #expect(
                loop.packets[range.upperBound - 1].fixed.lowerBound
                    <= loop.packets[range.upperBound - 1].fixed.upperBound)
        }
        let rate = Double(encoded.frames.reduce(0) { $0 + $1.bytes.count } * 8) / 2_000
        #expect((350...650).contains(rate), "\(rate) kbit/s for 500")
    }

    @Test("H.264 is packetized by RFC 6184 and depacketized to a stream that OpenH264 decodes, trace included")
    func h264Loop() throws {
        let encoded = try EncodedLoop.video(
            .h264, width: 640, height: 360, framesPerSecond: 30, kilobitsPerSecond: 1_000, seconds: 1)
        let loop = PacketLoop(h264: encoded)
        #expect(loop.frames.count == 30 && encoded.frames[0].isKey && !encoded.frames[1].isKey)
        #expect(loop.packets.allSatisfy { $0.length <= PacketLoop.maximumPayload })
        let assembler = FramePlayer(.h264, decodes: true)
        var forms: Set<UInt8> = []
        for (sequence, packet) in loop.packets.enumerated() {
            var bytes = Array(loop.memory[packet.offset..<(packet.offset + packet.length)])
            if packet.endsFrame {
                bytes.withUnsafeMutableBytes {
                    Trace(stream: 0, counter: UInt32(sequence), time: 1)
                        .write(to: $0.baseAddress! + packet.length - Trace.length)
                }
            }
            forms.insert(bytes[0] & 0x1f)
            let part = try #require(bytes.withUnsafeBytes { H264Payload($0) })
            part.stream.withUnsafeBytes {
                assembler.add(
                    $0, sequence: Int64(sequence), starts: part.startsFrame, isKey: part.isKey, ends: packet.endsFrame)
            }
        }
        #expect(forms.isSuperset(of: [24, 28]))
        #expect(assembler.frames == 30 && assembler.decoded == 30 && assembler.broken == 0)
    }

    @Test("Audio stays an Opus packet of one frame with padding (RFC 6716 section 3.2.5)")
    func audioLoop() throws {
        let loop = PacketLoop(opus: try .opus(kilobitsPerSecond: 32, seconds: 1))
        #expect(loop.packets.count == 50)
        for packet in loop.packets {
            #expect(loop.memory[packet.offset] & 3 == 3 && loop.memory[packet.offset + 1] == 0x41)
            #expect(Int(loop.memory[packet.offset + 2]) == Trace.length)
        }
    }

    @Test("Every scenario file loads and has a description")
    func scenarios() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("LoadTests/Scenarios").path
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".json") }
        #expect(names.count >= 10)
        for name in names {
            let scenario = try Scenario.load(file: "\(folder)/\(name)", overrides: [])
            #expect(!scenario.description.isEmpty && scenario.rooms > 0)
        }
    }

    @Test("Options override any number of a scenario; an unknown name is refused")
    func overrides() throws {
        let scenario = try Scenario.load(
            file: nil, overrides: [("video.kbps", "300"), ("subscribers", "7"), ("video.simulcast", "true")])
        #expect(scenario.video.kbps == 300 && scenario.subscribers == 7)
        #expect(scenario.media.layers.map(\.kilobitsPerSecond) == [30, 90, 300])
        #expect(throws: LoadError.self) { try Scenario.load(file: nil, overrides: [("video.kpbs", "300")]) }
    }

    @Test("The load generator's offer is read with all that it offers, and answered with the same payload types")
    func descriptions() throws {
        let place = PeerPlace(index: 0, address: SocketAddress(ipv4: 0xc000_0201, port: 7_900))
        let side = LocalSide(ice: Offered.credentials(), fingerprint: [UInt8](repeating: 0xab, count: 32), place: place)
        let offer = makeOffer(OfferedMedia(sendsAudio: true, videoLayers: 3), .vp8, from: side, name: "ada")
        let remote = try RemoteSide(offer.sdp)
        #expect(remote.receives == [111: .opus, 96: .vp8, 97: .rtx(of: 96)])
        #expect(remote.ice == offer.ice && remote.destination.port == 7_900)
        #expect(remote.extensions.transportSequence == 3 && remote.extensions.rid == 10)
        let answer = makeAnswer(to: remote, from: side)
        #expect(answer.contains("a=rtpmap:97 rtx/90000") && answer.contains("a=extmap:4 "))
        #expect(offer.sends.map(\.rid) == [nil, "q", "h", "f"])
    }
}
