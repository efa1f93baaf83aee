import CLoadIO
import MediaControl
import Primitives
import RTP
import Simulation

extension MediaThread {
    func obey(_ command: ThreadCommand) {
        switch command {
        case .open(let plan): open(plan)
        case .update(let id, let receives, let extensions):
            guard let peer = byID[id].flatMap({ peers[$0] }) else { return }
            peer.receives = receives
            peer.extensions = extensions
            peer.transportSequenceID = extensions.transportSequence
        case .close(let id): close(id)
        case .resetCounters:
            counters = Counters()
            delay.removeAll()
        case .restartSilences: for silence in silences.values { silence.restart(at: now) }
        }
    }

    private func open(_ plan: ConnectionPlan) {
        let index = plan.place.index
        while peers.count <= index {
            peers.append(nil)
            places.append(nil)
        }
        guard let place = try? sockets.place(peer: index) else {
            counters.unexplained &+= 1
            return
        }
        var behaviour = ClientBehaviour()
        behaviour.role = plan.isDTLSClient ? .client : .server
        let transport = ClientTransport(
            context: context, behaviour: behaviour, local: plan.localICE, server: plan.remoteICE,
            serverFingerprint: plan.fingerprintSHA256, destination: plan.destination)
        let peer = Peer(
            index: index, plan: plan, transport: transport, address: place.address, socket: place.socket,
            random: RandomSource(seed: random.next()))
        if !plan.participant.isEmpty {
            let silence = silences[plan.participant] ?? Silence()
            silences[plan.participant] = silence
            peer.silence = silence
        }
        peers[index] = peer
        places[index] = UnsafeRawPointer(Unmanaged.passUnretained(peer).toOpaque())
        connecting += 1
        if !peer.hasPerfectLink { impaired += 1 }
        byID[plan.id] = index
        bySocket[place.socket] = index
        advance(peer)
        send(peer)
    }

    private func close(_ id: ConnectionID) {
        guard let index = byID.removeValue(forKey: id), let peer = peers[index] else { return }
        peer.transport.close(into: &batch)
        send(peer)
        end(peer)
        peers[index] = nil
        places[index] = nil
    }

    private func end(_ peer: Peer) {
        guard !peer.isEnded else { return }
        peer.isEnded = true
        if !peer.isConnected { connecting -= 1 }
        if !peer.hasPerfectLink { impaired -= 1 }
        countAbandoned(of: peer)
        for stream in peer.sends { sendStreams[Int(stream.index)] = nil }
        counters.ended &+= 1
    }

    /// Lets ICE and DTLS do what is due, and sets the next alarm.
    func advance(_ peer: Peer) {
        peer.transport.advance(to: MonotonicTime(nanoseconds: now), into: &batch)
        noteTransport(peer)
    }

    func noteTransport(_ peer: Peer) {
        if peer.transport.hasEnded { return end(peer) }
        if peer.transport.isConnected, !peer.isConnected { start(peer) }
        let next = peer.transport.nextDeadline.nanoseconds
        // An earlier alarm that is already set is enough.
        if next < peer.wakeAt || peer.wakeAt <= now {
            peer.wakeAt = min(next, now + 3_000_000_000)
            schedule(.transport, peer.index, at: peer.wakeAt)
        }
    }

    private func start(_ peer: Peer) {
        peer.isConnected = true
        connecting -= 1
        counters.connected &+= 1
        srtpProfiles.insert(peer.transport.srtpProfileName)
        joinTimes.add(now - peer.plan.startedAt)
        for plan in peer.plan.sends {
            let stream = SendStream(
                index: UInt32(sendStreams.count), plan: plan, loop: loops.loop(for: plan), extensions: peer.extensions,
                now: now, random: &random)
            sendStreams.append(stream)
            owners.append(peer.index)
            peer.sends.append(stream)
            schedule(.frame, Int(stream.index), at: stream.nextFrame + plan.burst)
        }
        let phase = Int64(random.next() % 1_000_000_000)
        schedule(.report, peer.index, at: now + phase)
    }
}
