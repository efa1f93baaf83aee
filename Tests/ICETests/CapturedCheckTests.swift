import ICE
import Primitives
import TestSupport
import Testing

@Suite("Captured connectivity checks")
struct CapturedCheckTests {
    @Test(
        "Captured checks are answered, and select their address once it has answered the server's own check",
        arguments: WireCapture.all)
    func answered(name: String) throws {
        let capture = try WireCapture.load(name)
        let stun = STUNAgent(tieBreaker: 3)
        var output = OutboundBatch(datagrams: 16, bytes: 32_768)
        let source = SocketAddress(ipv4: 0x7f00_0001, port: 61_000)
        let local = ICECredential(ufrag: capture.serverUfrag, password: capture.serverPwd)
        let remote = ICECredential(ufrag: "cliU", password: "clientPasswordOf24Letters")
        var agent = ICELiteAgent(local: local, settings: ICESettings())
        agent.setRemote(remote, at: .zero)
        var random = RandomSource(seed: 1)
        // GStreamer's third message is an indication that keeps a NAT open: used, not answered.
        let messages = capture.stunMessages
        for bytes in messages where bytes[0] == 0 && bytes[1] == 1 {
            let ufrag = bytes.withUnsafeBytes { STUNPeek.localUfrag(of: $0.bytes) }
            #expect(ufrag.map { String(decoding: bytes[$0], as: UTF8.self) } == capture.serverUfrag)
            bytes.withUnsafeBytes {
                #expect(agent.receive($0, from: source, at: .zero, stun: stun, random: &random, into: &output) == nil)
            }
        }
        #expect(agent.selected == nil, "nobody has answered")
        let written = output.entries.map { UnsafeRawBufferPointer(output.bytes(of: $0)) }
        #expect(written.count { $0[0] == 1 && $0[1] == 1 } == messages.count { $0[1] == 1 })
        // The server's own check leaves ahead of its first answer.
        let check = try #require(written.first)
        #expect(check[0] == 0 && check[1] == 1)
        var client = OutboundBatch(datagrams: 1, bytes: 1_024)
        #expect(
            stun.answer(check, local: remote, from: source, isControlling: true, into: &client)
                == .answered(nominates: false))
        let answer = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(client.arena)[..<client.used])
        let elsewhere = SocketAddress(ipv4: 0x7f00_0002, port: 61_000)
        #expect(
            agent.receive(answer, from: elsewhere, at: .zero, stun: stun, random: &random, into: &output)
                == .stunUnexpected)
        #expect(agent.receive(answer, from: source, at: .zero, stun: stun, random: &random, into: &output) == nil)
        for indication in messages where indication[1] == 0x11 {
            #expect(agent.isValidated(source))
            #expect(indication.withUnsafeBytes { STUNPeek.localUfrag(of: $0.bytes) } == nil)
        }
        #expect(agent.selected == source, "each of them nominates at last")
        #expect(agent.pollEvent() == .validated(source))
        #expect(agent.pollEvent() == .nominated(source))
        #expect(agent.pollEvent() == .consented(source))
        #expect(agent.pollEvent() == .selected(source, isMove: false))
    }
}
