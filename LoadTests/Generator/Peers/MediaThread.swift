import CLoadIO
import Cryptography
import NetworkIO
import Primitives
import RTP
import SRTP
import Simulation
import Synchronization

/// The media of many peers on one thread: sockets, timers, ICE, DTLS, SRTP, what publishers send and subscribers receive.
///
/// Only its own thread uses it; others post commands and read snapshots.
final class MediaThread {
    /// What a timer is for; the low bits of its key.
    enum Timer: UInt64 { case transport, report, feedback, nack, frame }

    let loops: LoopLibrary
    let shared: MediaThreadHandle
    let context: ClientContext
    var sockets: PeerSockets
    var wheel: TimingWheel
    private let reportStep: Int64
    var peers: [Peer?] = []
    /// The address of each peer, without ownership, to prefetch its memory.
    var places: [UnsafeRawPointer?] = []
    var byAddress: [UInt32: Int] = [:]
    var bySocket: [Int: Int] = [:]
    var byID: [ConnectionID: Int] = [:]
    var sendStreams: [SendStream?] = []
    /// Connections that are not up yet.
    var connecting = 0
    /// The peer of each sending stream.
    var owners: [Int] = []
    var counters = Counters()
    var srtpProfiles: Set<String> = []
    var delay = Histogram()
    var joinTimes = Histogram()
    var firstFrameTimes = Histogram()
    /// By participant.
    var silences: [String: Silence] = [:]
    var random: RandomSource
    var now: Int64
    /// CLOCK_REALTIME less CLOCK_MONOTONIC: the kernel's timestamps use the former.
    var clockDifference: Int64
    var batch = OutboundBatch(datagrams: 512, bytes: 1 << 20)
    /// Where each datagram of the batch comes from.
    var origins: [PeerSockets.Origin] = []
    private var due: [UInt64] = []
    private var ready: [UInt32] = []
    /// When sockets are read next, and when something was last missing.
    private var nextLook: Int64 = 0
    var lastGap: Int64 = 0
    /// Peers behind a link of the scenario that loses or delays.
    var impaired = 0
    private var nextSnapshot: Int64

    init(
        shared: MediaThreadHandle, loops: LoopLibrary, addresses: PeerAddresses, certificate: Certificate,
        profiles: String, seed: UInt64, timers: PeerTimers = .shared, receiveOffload: Bool = true
    ) throws {
        self.shared = shared
        self.loops = loops
        sockets = try PeerSockets(addresses, wake: shared.wake.descriptor, receiveOffload: receiveOffload)
        context = try ClientContext(certificate: certificate, profiles: profiles)
        random = RandomSource(seed: seed)
        now = loadio_monotonic()
        clockDifference = loadio_realtime() - now
        wheel = TimingWheel(now: now, slotNanoseconds: timers.slotNanoseconds)
        reportStep = timers.reportStep
        nextSnapshot = now
        shared.becomeReady(firstAddress: sockets.firstAddress)
    }

    /// Runs until the handle stops it.
    func run() {
        while !shared.isStopped {
            sleep()
            now = loadio_monotonic()
            for mark in ready {
                if mark == PeerSockets.wakeMark { shared.wake.clear() } else if !drain(Int(mark)) { nextLook = now }
            }
            now = loadio_monotonic()
            for command in shared.consumeCommands() { obey(command) }
            wheel.advance(to: now, into: &due)
            for (index, key) in due.enumerated() {
                if index + 2 < due.count { warm(timer: due[index + 2]) }
                fire(key)
            }
            flush()
            if now >= nextSnapshot { publish() }
        }
        finishCounting()
        publish()
    }

    /// Sleeps until a timer is due, a command is posted, or it is time to read the sockets.
    ///
    /// While all connections are up, packets do not wake it: it reads every 12 ms, and every 4 ms while packets are lost. The
    /// kernel timestamps arrivals, so no measurement suffers, the generator runs fewer turns, and the server does not pay for
    /// waking its own load, which on a real network is another machine.
    private func sleep() {
        now = loadio_monotonic()
        if connecting > 0 {
            sockets.wait(wheel.nextDeadline(now: now, limit: 20_000_000) - now, into: &ready)
            return
        }
        ready.removeAll(keepingCapacity: true)
        let pause = wheel.nextDeadline(now: now, limit: max(0, nextLook - now)) - now
        if sockets.waitForSignal(pause) { shared.wake.clear() }
        now = loadio_monotonic()
        guard now >= nextLook else { return }
        let isLossy = impaired > 0 || now - lastGap < 1_000_000_000
        nextLook = now + (isLossy ? 4_000_000 : 12_000_000)
        if sockets.isShared { ready.append(0) } else { sockets.wait(0, into: &ready) }
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
        // Feedback and reports are sent in steps: fewer turns, with more datagrams in each.
        let step = timer == .feedback || timer == .report ? reportStep : 1
        wheel.schedule(UInt64(index) << 3 | timer.rawValue, at: (time + step - 1) / step * step)
    }

    /// Marks what a peer's state machines have written as that peer's. It is sent at the end of the turn, together for all peers.
    func send(_ peer: Peer) {
        guard batch.count > origins.count else { return }
        for _ in origins.count..<batch.count {
            let isLost = peer.plan.link.lossUp > 0 && isLost(peer.plan.link.lossUp, peer)
            if isLost { counters.linkDropped &+= 1 }
            origins.append(PeerSockets.Origin(address: peer.address, socket: isLost ? -1 : Int32(peer.socket)))
        }
        if batch.count > 192 || batch.used > 512 << 10 { flush() }
    }

    private func flush() {
        guard batch.count > 0 else { return }
        let wanted = origins.count { $0.socket >= 0 }
        let sent = sockets.send(batch, from: origins)
        counters.datagramsOut &+= UInt64(sent)
        counters.unsent &+= UInt64(wanted - sent)
        batch.removeAll()
        origins.removeAll(keepingCapacity: true)
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
                open: peers.count { $0.map { $0.isConnected && !$0.isEnded } ?? false }, srtpProfiles: srtpProfiles,
                silences: silences.values.map { $0.longest(until: now) }))
        delay.removeAll()
        joinTimes.removeAll()
        firstFrameTimes.removeAll()
    }
}
