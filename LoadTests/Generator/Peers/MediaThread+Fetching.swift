import CLoadIO
import Primitives

extension MediaThread {
    /// Reads what has arrived at a socket, but not for so long that timers are late; returns whether that was all.
    func drain(_ socket: Int) -> Bool {
        for _ in 0..<32 {
            let count = sockets.receive(socket)
            counters.receiveRuns &+= UInt64(count)
            warm(count, socket)
            for index in 0..<count { receive(sockets.runs[index], socket) }
            if count < Int(LOADIO_RUNS) { return true }
        }
        return false
    }

    private func receiver(_ run: loadio_run, _ socket: Int) -> Int? {
        if case .range(let first) = sockets.addresses { return Int(run.to &- first) }
        return bySocket[socket]
    }

    /// Prefetches the memory of the peers of the runs just read: it is cold by the time the next packets arrive.
    private func warm(_ count: Int, _ socket: Int) {
        for index in 0..<count {
            guard let found = receiver(sockets.runs[index], socket), found < places.count, let place = places[found]
            else { continue }
            Prefetch.lines(place, Peer.hotBytes)
        }
        for index in 0..<count {
            let run = sockets.runs[index]
            guard let found = receiver(run, socket), found < peers.count, run.length >= 12 else { continue }
            let ssrc = UnsafeRawPointer(run.bytes).loadUnaligned(fromByteOffset: 8, as: UInt32.self)
            peers[found]?.warm(UInt32(bigEndian: ssrc))
        }
    }

    /// Prefetches the memory of the peer whose timer comes after the next.
    func warm(timer key: UInt64) {
        let index = Int(key >> 3)
        guard key & 7 != Timer.frame.rawValue, index < places.count, let place = places[index] else { return }
        Prefetch.lines(place, Peer.hotBytes)
    }

    private func receive(_ run: loadio_run, _ socket: Int) {
        guard let found = receiver(run, socket), found < peers.count, let peer = peers[found] else { return }
        let time = run.time > 0 ? run.time - clockDifference : now
        var offset = 0
        while offset < Int(run.length) {
            let length = min(Int(run.segment), Int(run.length) - offset)
            let datagram = UnsafeMutableRawBufferPointer(start: run.bytes + offset, count: length)
            counters.datagramsIn &+= 1
            receive(datagram, peer, at: time)
            offset += length
        }
        send(peer)
    }
}
