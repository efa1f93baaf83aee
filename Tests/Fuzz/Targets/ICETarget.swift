import ICE
import Primitives

/// One lite agent: datagrams from five addresses, raw ones and ones that are signed rightly, time, restarts.
enum ICETarget {
    static let local = (ufrag: "srvUfrag", password: "serverPasswordOf24Letters")
    static let remote = (ufrag: "cliU", password: "clientPasswordOf24Letters")

    static func start() -> (UnsafeRawBufferPointer) -> Void {
        let stun = STUNAgent(tieBreaker: 3)
        return { run($0, stun) }
    }

    private static func run(_ bytes: UnsafeRawBufferPointer, _ stun: STUNAgent) {
        var input = FuzzInput(bytes)
        var agent = ICELiteAgent(
            local: ICECredential(ufrag: local.ufrag, password: local.password), settings: ICESettings())
        var output = OutboundBatch(datagrams: 64, bytes: 65_536)
        var random = RandomSource(seed: 1)
        var now = MonotonicTime(milliseconds: 1_000)
        var isSigned = false, hasAnswered = false
        var restarts = 0
        agent.setRemote(ICECredential(ufrag: remote.ufrag, password: remote.password), at: now)
        while !input.isEmpty {
            let kind = input.byte()
            // More addresses than an agent keeps.
            let source = SocketAddress(ipv4: 0x0a00_0000 | UInt32(kind >> 4), port: 1_000)
            switch kind % 8 {
            case 0, 1:
                let datagram = input.record()
                _ = agent.receive(
                    datagram, from: source, at: now, stun: stun, random: &random, into: &output)
            case 2, 3:
                isSigned = true
                let name = restarts == 0 || kind % 8 == 2 ? local.ufrag : "srvUfrag\(restarts)"
                let datagram = SignedSTUN.message(
                    type: 1, transaction: [kind, UInt8(truncatingIfNeeded: now.milliseconds / 100)],
                    username: "\(name):\(remote.ufrag)", attributes: input.record(),
                    password: local.password)
                datagram.withUnsafeBytes {
                    _ = agent.receive($0, from: source, at: now, stun: stun, random: &random, into: &output)
                }
            case 4:
                isSigned = true
                hasAnswered = true
                answer(input.record(), &agent, stun, now, &random, &output)
            case 5:
                now = now + .milliseconds(Int64(input.byte()) * 100)
                agent.advance(to: now, stun: stun, random: &random, into: &output)
            case 6:
                restarts += 1
                agent.restart(local: ICECredential(ufrag: "srvUfrag\(restarts)", password: local.password))
            default:
                agent.setRemote(
                    ICECredential(ufrag: "\(remote.ufrag)\(kind >> 4)", password: remote.password), at: now)
            }
            if output.count > 48 { output.removeAll() }
            while agent.pollEvent() != nil {}
            if !isSigned { precondition(agent.selected == nil, "nobody is believed without a password") }
            if !hasAnswered { precondition(agent.selected == nil, "nobody is sent to without an answer") }
            let validated = (0..<16).count { agent.isValidated(.init(ipv4: 0x0a00_0000 | UInt32($0), port: 1_000)) }
            precondition(validated <= ICELiteAgent.maximumAddresses, "addresses are bounded")
        }
    }

    /// Answers the server's newest check from where it went, signed rightly, with any attributes.
    private static func answer(
        _ attributes: UnsafeRawBufferPointer, _ agent: inout ICELiteAgent, _ stun: STUNAgent, _ now: MonotonicTime,
        _ random: inout RandomSource, _ output: inout OutboundBatch
    ) {
        let arena = UnsafeRawBufferPointer(output.arena)
        guard let check = output.entries.last(where: { arena[$0.offset] == 0 && arena[$0.offset + 1] == 1 }) else {
            return
        }
        let transaction = Array(arena[(check.offset + 8)..<(check.offset + 20)])
        let datagram = SignedSTUN.message(
            type: 0x0101, transaction: transaction, username: nil, attributes: attributes, password: remote.password)
        datagram.withUnsafeBytes {
            _ = agent.receive(
                $0, from: check.destination, at: now, stun: stun, random: &random, into: &output)
        }
    }
}
