import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Forwarding

@Suite("Layers that the publisher announces")
struct ReceiveAnnouncementTests {
    /// Stream 0 of three with one spatial and one temporal layer each: 100, 300 and 1,500 kbit/s; 180, 360 and 720 lines. As Chromium sends it.
    static let allocation: [UInt8] = [
        0x21, 0x00, 0x64, 0xac, 0x02, 0xdc, 0x0b, 0x01, 0x3f, 0x00, 0xb3, 0x0f, 0x02, 0x7f, 0x01, 0x67, 0x0f, 0x04,
        0xff, 0x02, 0xcf, 0x1e,
    ]

    private func offers(announced: [UInt8]?) -> [LayerOffer] {
        let harness = SendHarness(
            SendSession.track(layers: 3, extensions: [(.videoLayersAllocation, 5)]), SendSession.subscription())
        // A keyframe of each layer, many times larger than what follows.
        var number: UInt16 = 0
        for layer in 0..<3 {
            for packet in 0..<6 {
                let one = TestPacket(
                    ssrc: 1 << 8 | UInt32(layer), sequence: number, timestamp: 90_000, marker: packet == 5,
                    payload: packet == 0
                        ? TestPacket.vp8Keyframe() + [UInt8](repeating: 1, count: 900)
                        : TestPacket.vp8Middle + [UInt8](repeating: 1, count: 900))
                let isFirst = packet == 0 && layer == 0
                let bytes = isFirst ? announced.map(one.announcing) ?? one.bytes : one.bytes
                harness.turn([bytes], at: at(Double(packet)))
                number &+= 1
            }
        }
        var offers: [LayerOffer] = []
        harness.track.appendOffers(at: at(40), to: &offers)
        return offers
    }

    @Test("Until a second was measured a layer's bitrate is the announced one, not its keyframe's")
    func rates() {
        let reported = offers(announced: Self.allocation)
        #expect(reported.map(\.bitrate) == [100, 300, 1_500].map { Bitrate.kilobitsPerSecond($0) })
        let measured = offers(announced: nil)
        #expect(measured.count == 3)
        #expect(measured.allSatisfy { $0.bitrate > .kilobitsPerSecond(160) })
    }

    @Test(
        "H11: while an encoder comes up, and again after a pause, a layer counts as the announced rate, if that is higher"
    )
    func ramp() {
        let harness = SendHarness(
            SendSession.track(layers: 3, extensions: [(.videoLayersAllocation, 5)]), SendSession.subscription())
        var number: UInt16 = 0
        /// A frame of a kilobyte in each layer every 33 ms, some 220 kbit/s; then what they are offered at, in kbit/s.
        func rates(from start: Double, to end: Double) -> [Double] {
            for frame in 0..<Int((end - start) * 30) {
                for layer in 0..<3 {
                    let packet = TestPacket(
                        ssrc: 1 << 8 | UInt32(layer), sequence: number,
                        timestamp: UInt32(start * 90_000) + 3_000 * UInt32(frame), marker: true,
                        payload: (frame == 0 ? TestPacket.vp8Keyframe() : TestPacket.vp8Middle)
                            + [UInt8](repeating: 1, count: 900))
                    let isFirst = frame == 0 && layer == 0
                    harness.turn(
                        [isFirst ? packet.announcing(Self.allocation) : packet.bytes],
                        at: at(start * 1_000 + Double(frame) * 33.3))
                }
                number &+= 1
            }
            var offers: [LayerOffer] = []
            harness.track.appendOffers(at: at(end * 1_000), to: &offers)
            return offers.map { Double($0.bitrate.bitsPerSecond) / 1_000 }
        }
        let young = rates(from: 1, to: 4)
        #expect(young.map { ($0 / 50).rounded() * 50 } == [200, 300, 1_500])
        let grown = rates(from: 4, to: 7)
        #expect(grown.allSatisfy { $0 < 300 } && grown.count == 3, "\(grown)")
        let resumed = rates(from: 11, to: 13)
        #expect(resumed.map { ($0 / 50).rounded() * 50 } == [200, 300, 1_500])
    }

    @Test("A truncated announcement, or one for unknown layers, changes nothing")
    func damaged() {
        for length in [1, 5, 12, 21] {
            let cut = offers(announced: Array(Self.allocation.prefix(length)))
            #expect(cut.map(\.point.spatial) == [0, 1, 2])
        }
    }
}

extension TestPacket {
    /// Its bytes with an announcement of layers as extension 5. The element does not fit the one-byte form, so two bytes it is.
    fileprivate func announcing(_ allocation: [UInt8]) -> [UInt8] {
        var bytes = bytes
        var elements = [5, UInt8(allocation.count)] + allocation
        while elements.count % 4 != 0 { elements.append(0) }
        bytes[0] |= 0x10
        bytes.insert(contentsOf: [0x10, 0x00, 0x00, UInt8(elements.count / 4)] + elements, at: 12)
        return bytes
    }
}
