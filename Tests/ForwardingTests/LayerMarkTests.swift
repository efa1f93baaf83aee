import PayloadFormats
import Testing

@testable import Forwarding

@Suite("What one packet announces about layers")
struct LayerMarkTests {
    @Test(
        "A key index delta of 5 bits is read back, and announces and joins nothing",
        arguments: [0, 1, 0x1f, 0x3f] as [UInt8])
    func keyIndex(delta: UInt8) {
        let mark = LayerMark(keyIndexDelta: delta)
        #expect(mark.keyIndexDelta == delta & 0x1f)
        #expect(!mark.hasTargets && mark.joining.isEmpty)
    }

    @Test("Announced layers are read back, 7 and above as no limit, and keep the key index")
    func targets() {
        let mark = LayerMark(targets: LayerCaps(spatial: 1, temporal: 2))
        #expect(mark.hasTargets && !mark.announcesAll && mark.targets == LayerCaps(spatial: 1, temporal: 2))
        #expect(mark.keyIndexDelta == 0 && mark.joining.isEmpty)
        #expect(LayerMark(targets: LayerCaps()).announcesAll)
        #expect(LayerMark(targets: LayerCaps(spatial: 7, temporal: 9)).announcesAll)
        #expect(!LayerMark().announcesAll)
    }

    @Test("A packet joins both neighbours and announces nothing")
    func joining() {
        var mark = LayerMark()
        mark.join(.before)
        mark.join(.next)
        #expect(mark.joining == [.before, .next])
        #expect(!mark.hasTargets && mark.keyIndexDelta == 0)
    }
}
