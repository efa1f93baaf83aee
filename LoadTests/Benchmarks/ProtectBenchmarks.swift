import Primitives
import SRTP

/// Encrypting one packet, with as many keys as a room has receivers.
enum ProtectBenchmarks {
    static func run(_ runner: Runner) throws {
        try SRTPLibrary.start()
        for profile in [SRTPProfile.aeadAES128GCM, .aes128CM80] {
            for size in [200, 1_100] {
                protect(runner, profile, size, keys: 256)
            }
        }
    }

    private static func protect(_ runner: Runner, _ profile: SRTPProfile, _ size: Int, keys: Int) {
        let name = profile == .aeadAES128GCM ? "GCM" : "CM"
        let length = profile.keyLength + profile.saltLength
        func key(_ start: Int) -> [UInt8] { (0..<length).map { UInt8(truncatingIfNeeded: start + $0) } }
        let sessions = (0..<keys).compactMap { index in
            SRTPSession(profile: profile, sendingKey: key(index), receivingKey: key(index + 1))
        }
        let clear = UnsafeMutableRawBufferPointer.allocate(byteCount: 1_500, alignment: 64)
        let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: 1_500, alignment: 64)
        defer {
            clear.deallocate()
            slot.deallocate()
        }
        clear.initializeMemory(as: UInt8.self, repeating: 3)
        clear[0] = 0x80
        var sequence: UInt16 = 0
        let packets = 16
        runner.time("protect: \(name) \(size) B, \(keys) keys", operations: keys * packets) {
            for _ in 0..<packets {
                sequence &+= 1
                clear[2] = UInt8(sequence >> 8)
                clear[3] = UInt8(truncatingIfNeeded: sequence)
                for session in sessions {
                    slot.baseAddress!.copyMemory(from: clear.baseAddress!, byteCount: size)
                    guard session.protectRTP(slot, length: size) != nil else { preconditionFailure("refused") }
                }
            }
        }
    }
}
