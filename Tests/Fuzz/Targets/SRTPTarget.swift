import Primitives
import SRTP

/// One session of each profile: raw datagrams, and packets that were protected rightly around any clear bytes, whole or damaged.
enum SRTPTarget {
    static func start() throws -> (UnsafeRawBufferPointer) -> Void {
        try SRTPLibrary.start()
        return { run($0) }
    }

    private static func key(_ profile: SRTPProfile) -> [UInt8] {
        (0..<(profile.keyLength + profile.saltLength)).map { UInt8($0) }
    }

    private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let profile = SRTPProfile.allCases[Int(input.byte()) % 3]
        guard let sender = SRTPSession(profile: profile, sendingKey: key(profile), receivingKey: key(profile)),
            let receiver = SRTPSession(profile: profile, sendingKey: key(profile), receivingKey: key(profile))
        else { preconditionFailure("libsrtp2 takes the key") }
        while !input.isEmpty {
            let kind = input.byte()
            let record = input.record()
            let isRTCP = kind & 1 != 0
            record.withCopy(room: 64) { slot in
                var datagram = UnsafeMutableRawBufferPointer(rebasing: slot[..<record.count])
                if kind & 2 != 0 {
                    let length =
                        isRTCP
                        ? sender.protectRTCP(slot, length: record.count)
                        : sender.protectRTP(slot, length: record.count)
                    guard let length else { return }
                    precondition(length <= record.count + 20, "protection adds what it says")
                    datagram = UnsafeMutableRawBufferPointer(rebasing: slot[..<length])
                    if kind & 4 != 0 { datagram[Int(kind >> 3) % length] ^= 0x40 }
                }
                let result = isRTCP ? receiver.unprotectRTCP(datagram) : receiver.unprotectRTP(datagram)
                guard case .clear(let length) = result else { return }
                precondition(kind & 6 == 2, "only what was protected and left alone comes out clear")
                precondition(length == record.count, "with the length it had")
                precondition(slot[..<length].elementsEqual(record), "and the bytes it had")
            }
            if kind & 0xc0 == 0xc0 { receiver.releaseReceivingStream(ssrc: UInt32(kind)) }
        }
    }
}
