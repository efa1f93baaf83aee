import MediaEngine
import NetworkIO
import Primitives

// TCP connections in a worker's turn: their packets go the same way as datagrams.

extension WorkerCore {
    /// Passes packets that wait at some of the connections to the engine, closes connections that have ended or are unused, and notifies the engine.
    mutating func serve(_ tcp: TCPLane, isReady: Bool, isLate: Bool, at now: MonotonicTime) {
        guard isReady || tcp.nextDeadline <= now else { return }
        tcp.look(at: now)
        while let (packet, source) = tcp.nextPacket(at: now) {
            if !postpone(packet, from: source) {
                makeRoom()
                if isLate {
                    engine.receiveLate(packet, from: source, at: now, into: &batch)
                } else {
                    engine.receive(packet, from: source, at: now, into: &batch)
                }
            }
            if tcp.awaitsCheck { tcp.judge(isKnown: engine.knows(source)) }
        }
        tcp.sweep(at: now) { engine.knows($0) }
        for change in tcp.settle() {
            switch change {
            case .ended(let address): engine.connectionEnded(address, at: now)
            case .held(let address): engine.holdVideo(to: address, at: now)
            case .caughtUp(let address): engine.resumeVideo(to: address, at: now)
            }
        }
    }

    /// Takes over a connection from the acceptor of a shared port.
    mutating func adopt(_ connection: AcceptedConnection, at now: MonotonicTime) {
        let socket = TCPSocket(descriptor: connection.descriptor)
        tcp?.adopt(socket, from: connection.address, initial: connection.bytes, at: now)
    }
}
