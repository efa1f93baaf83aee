import ICE
import Primitives
import TestSupport
import Testing

@Suite("Captured connectivity checks")
struct CapturedCheckTests {
    @Test(
        "Checks of real clients are answered and select their address",
        arguments: WireCapture.all)
    func answered(name: String) throws {
        let capture = try WireCapture.load(name)
        let stun = STUNAgent(tieBreaker: 3)
        var output = OutboundBatch(datagrams: 16, bytes: 32_768)
        let source = SocketAddress(ipv4: 0x7f00_0001, port: 61_000)
        var agent = ICELiteAgent(
            local: ICECredential(ufrag: capture.serverUfrag, password: capture.serverPwd), settings: ICESettings())
        // GStreamer's third message is an indication that keeps a NAT open: used, not answered.
        let messages = capture.stunMessages
        for bytes in messages where bytes[0] == 0 && bytes[1] == 1 {
            let ufrag = bytes.withUnsafeBytes { STUNPeek.localUfrag(of: $0.bytes) }
            #expect(ufrag.map { String(decoding: bytes[$0], as: UTF8.self) } == capture.serverUfrag)
            bytes.withUnsafeBytes {
                #expect(agent.receive($0, from: source, at: .zero, stun: stun, into: &output) == nil)
            }
        }
        #expect(output.count == messages.count { $0[1] == 1 })
        for indication in messages where indication[1] == 0x11 {
            #expect(agent.isValidated(source))
            #expect(indication.withUnsafeBytes { STUNPeek.localUfrag(of: $0.bytes) } == nil)
        }
        #expect(agent.selected == source, "each of them nominates at last")
        #expect(agent.pollEvent() == .validated(source))
        #expect(agent.pollEvent() == .selected(source, isMove: false))
        // XOR-MAPPED-ADDRESS says where the check came from (RFC 8489 section 14.2).
        let reply = UnsafeRawBufferPointer(output.arena)
        #expect(reply.loadUnaligned(fromByteOffset: 0, as: UInt16.self).bigEndian == 0x0101)
    }
}
