import Primitives
import RTP

/// A byte stream in any pieces: the packets are those that lie in it, whatever the pieces, and none is longer than is accepted.
func fuzzStream(_ input: UnsafeRawBufferPointer) {
    var pieces = FuzzInput(input)
    let step = Int(pieces.byte()) + 1
    let stream = Array(pieces.rest)
    let whole = packets(of: stream, step: max(1, stream.count))
    precondition(packets(of: stream, step: step) == whole, "the pieces make no difference")
    precondition(packets(of: stream, step: 1) == whole, "single bytes make no difference")
    precondition(
        whole.allSatisfy { !$0.isEmpty && $0.count <= StreamFrame.maximumLength }, "no packet is empty or too long")
}

private func packets(of stream: [UInt8], step: Int) -> [[UInt8]] {
    var reader = FrameReader()
    var found: [[UInt8]] = []
    for start in stride(from: 0, to: stream.count, by: step) {
        var piece = Array(stream[start..<min(start + step, stream.count)])
        let goesOn = piece.withUnsafeMutableBytes { bytes -> Bool in
            var position = 0
            while true {
                switch reader.next(in: bytes, from: &position) {
                case .packet(let packet): found.append(Array(packet))
                case .needsMore: return true
                case .oversize: return false
                }
            }
        }
        guard goesOn else { break }
    }
    return found
}

extension Seeds {
    /// Three packets and a null packet; one that is too long.
    static func streams() -> [[UInt8]] {
        [
            [4, 0, 3, 1, 2, 3, 0, 0, 0, 1, 9, 0, 2, 8, 7], [0, 0, 1, 5, 0xff, 0xff, 1, 2],
            [200] + [0x04, 0xb0] + [UInt8](repeating: 0x80, count: 1_200) + [0, 5, 1, 2, 3, 4, 5],
        ]
    }
}
