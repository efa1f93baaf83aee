import CLoadIO
import Cryptography
import NetworkIO
import Primitives
import RTP
import SRTP
import Simulation
import Synchronization

/// The media of many peers on one thread: sockets, timers, ICE, DTLS, SRTP, what publishers send and subscribers find.
///
/// Only its own thread touches it; others post commands and read snapshots.
final class MediaThread {
    /// What a timer is for; the low bits of its key.
    enum Timer: UInt64 { case transport, report, feedback, nack, frame }

    let loops: LoopLibrary
    let shared: MediaThreadHandle
    let context: ClientContext
    var sockets: PeerSockets
    var wheel: TimingWheel
    var peers: [Peer?] = []
    var byAddress: [UInt32: Int] = [:]
    var bySocket: [Int: Int] = [:]
    var byID: [ConnectionID: Int] = [:]
    var sendStreams: [SendStream?] = []
    /// The peer of each sending stream.
    var owners: [Int] = []
    var counters = Counters()
    var delay = Histogram()
    var joinTimes = Histogram()
    var firstFrameTimes = Histogram()
    var random: RandomSource
    var now: Int64
    /// CLOCK_REALTIME less CLOCK_MONOTONIC: the kernel stamps by the former.
    var clockDifference: Int64
    var batch = OutboundBatch(datagrams: 256, bytes: 512 << 10)
    private var due: [UInt64] = []
    private var ready: [UInt32] = []
    private var nextSnapshot: Int64

    init(
        shared: MediaThreadHandle, loops: LoopLibrary, addresses: PeerAddresses, certificate: Certificate,
        profiles: String, seed: UInt64
    ) throws {
        self.shared = shared
        self.loops = loops
        sockets = try PeerSockets(addresses, wake: shared.wake.descriptor)
        context = try ClientContext(certificate: certificate, profiles: profiles)
        random = RandomSource(seed: seed)
        now = loadio_monotonic()
        clockDifference = loadio_realtime() - now
        wheel = TimingWheel(now: now)
        nextSnapshot = now
    }

    /// Runs until the handle says stop.
    func run() {
        while !shared.isStopped {
            now = loadio_monotonic()
            sockets.wait(wheel.nextDeadline(now: now, limit: 20_000_000) - now, into: &ready)
            now = loadio_monotonic()
            for mark in ready {
                if mark == PeerSockets.wakeMark { shared.wake.clear() } else { drain(Int(mark)) }
            }
            now = loadio_monotonic()
            for command in shared.takeCommands() { obey(command) }
            wheel.advance(to: now, into: &due)
            for key in due { fire(key) }
            if now >= nextSnapshot { publish() }
        }
        finishCounting()
        publish()
    }

    /// Fetches what waits at a socket, but not for so long that timers suffer.
    private func drain(_ socket: Int) {
        for _ in 0..<32 {
            let count = sockets.receive(socket)
            counters.receiveRuns &+= UInt64(count)
            for index in 0..<count { receive(sockets.runs[index], socket) }
            if count < Int(LOADIO_RUNS) { return }
        }
    }

    private func receive(_ run: loadio_run, _ socket: Int) {
        let found: Int?
        if case .range(let first) = sockets.addresses { found = Int(run.to &- first) } else { found = bySocket[socket] }
        guard let found, found < peers.count, let peer = peers[found] else { return }
        let time = run.time > 0 ? run.time - clockDifference : now
        let source = SocketAddress(ipv4: run.from, port: run.from_port)
        var offset = 0
        while offset < Int(run.length) {
            let length = min(Int(run.segment), Int(run.length) - offset)
            let datagram = UnsafeMutableRawBufferPointer(start: run.bytes + offset, count: length)
            counters.datagramsIn &+= 1
            receive(datagram, source, peer, at: time)
            offset += length
        }
        send(peer)
    }

    private func fire(_ key: UInt64) {
        let index = Int(key >> 3)
        guard let timer = Timer(rawValue: key & 7) else { return }
        if timer == .frame {
            if let stream = sendStreams[index] { sendFrame(of: stream) }
            return
        }
        guard let peer = peers[index], !peer.isEnded else { return }
        switch timer {
        case .transport: advance(peer)
        case .report: sendReports(peer)
        case .feedback: sendTransportFeedback(peer)
        case .nack: requestMissing(peer)
        case .frame: break
        }
        send(peer)
    }

    func schedule(_ timer: Timer, _ index: Int, at time: Int64) {
        wheel.schedule(UInt64(index) << 3 | timer.rawValue, at: time)
    }

    /// Sends what a peer's machines have written.
    func send(_ peer: Peer) {
        guard batch.count > 0 else { return }
        if peer.plan.link.lossUp > 0 { return sendLossy(peer) }
        counters.datagramsOut &+= UInt64(sockets.send(batch, from: peer.address, by: peer.socket))
        batch.removeAll()
    }

    private func sendLossy(_ peer: Peer) {
        var kept = OutboundBatch(datagrams: 256, bytes: 512 << 10)
        for entry in batch.entries {
            guard !isLost(peer.plan.link.lossUp, peer) else {
                counters.linkDropped &+= 1
                continue
            }
            let bytes = UnsafeRawBufferPointer(rebasing: batch.arena[entry.offset..<(entry.offset + entry.length)])
            _ = kept.append(bytes, to: entry.destination)
        }
        counters.datagramsOut &+= UInt64(sockets.send(kept, from: peer.address, by: peer.socket))
        batch.removeAll()
    }

    func isLost(_ share: Double, _ peer: Peer) -> Bool {
        share > 0 && Double(peer.random.next() >> 11) / Double(1 << 53) < share
    }

    private func publish() {
        nextSnapshot = now + 100_000_000
        clockDifference = loadio_realtime() - loadio_monotonic()
        counters.bufferDrops = sockets.drops
        shared.publish(
            Snapshot(
                counters: counters, delay: delay, joinTimes: joinTimes, firstFrameTimes: firstFrameTimes,
                threadTime: loadio_thread_time(),
                open: peers.count { $0.map { $0.isConnected && !$0.isEnded } ?? false }))
        delay.removeAll()
        joinTimes.removeAll()
        firstFrameTimes.removeAll()
    }
}
