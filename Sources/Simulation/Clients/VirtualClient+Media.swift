public import MediaControl
import Primitives

// What a client's script does with tracks. Commands reach the worker at once, because the control plane is not simulated.

extension VirtualClient {
    /// Publishes a camera or a screen.
    public func publish(_ plan: VideoPlan) -> Publication {
        let id = world.makeID()
        let isSimulcast = plan.layers.contains { $0.rid != nil }
        let format = SessionTerms.published(plan.codec)
        let streams = plan.layers.enumerated().map { index, layer in
            OutgoingStream(
                ssrc: Self.ssrc(id, index), rtxSSRC: Self.ssrc(id, index) | 0x80, mid: "\(id)", rid: layer.rid,
                format: format, random: &random)
        }
        let encodings = streams.map {
            isSimulcast ? EncodingDescription(rid: $0.rid) : EncodingDescription(ssrc: $0.ssrc, rtxSSRC: $0.rtxSSRC)
        }
        let description = TrackDescription(
            id: TrackID(id), peer: self.id, kind: .video, source: plan.source, mid: "\(id)", formats: [format],
            encodings: encodings, extensions: SessionTerms.publishedExtensions, feedback: [.nack, .pli, .transportCC])
        return add(
            Publication(
                description, streams: streams,
                source: .video(VideoSource(plan, track: id, at: world.now, random: &random)), client: self))
    }

    /// Publishes a microphone.
    public func publish(_ plan: AudioPlan = .init()) -> Publication {
        let id = world.makeID()
        let format = SessionTerms.published(.opus)
        let stream = OutgoingStream(
            ssrc: Self.ssrc(id, 0), rtxSSRC: nil, mid: "\(id)", rid: nil, format: format, random: &random)
        let description = TrackDescription(
            id: TrackID(id), peer: self.id, kind: .audio, source: .microphone, mid: "\(id)", formats: [format],
            encodings: [EncodingDescription(ssrc: stream.ssrc)], extensions: SessionTerms.publishedExtensions,
            feedback: [.transportCC])
        return add(
            Publication(
                description, streams: [stream], source: .audio(AudioSource(plan, track: id, at: world.now)),
                client: self))
    }

    private static func ssrc(_ track: UInt64, _ layer: Int) -> UInt32 {
        0x1000_0000 | UInt32(truncatingIfNeeded: track) << 8 | UInt32(layer)
    }

    private func add(_ publication: Publication) -> Publication {
        publications.append(publication)
        world.apply(.addTrack(publication.description), on: worker)
        schedule()
        return publication
    }

    /// Takes a track back.
    public func unpublish(_ publication: Publication) {
        publications.removeAll { $0 === publication }
        world.apply(.removeTrack(publication.id), on: worker)
    }

    /// Starts sending again after `isSending` was false, or at another pace, from the current time.
    public func resume(_ publication: Publication) {
        publication.isSending = true
        publication.hold(until: world.now)
        schedule()
    }

    /// Subscribes to a track.
    public func subscribe(
        to publication: Publication, preference: LayerPreference = .best, paused: Bool = false, transportCC: Bool = true
    ) -> View {
        let id = world.makeID()
        let kind = publication.description.kind
        let formats = kind == .audio ? [Codec.opus] : [.vp8, .vp9, .h264, .av1]
        var extensions = SessionTerms.acceptedExtensions
        if !transportCC { extensions[.transportSequence] = 0 }
        var kinds: FeedbackKinds = kind == .video ? [.nack, .pli] : []
        if transportCC { kinds.insert(.transportCC) }
        if settings.estimatesItself { kinds.insert(.remb) }
        let description = SubscriptionDescription(
            id: SubscriptionID(id), peer: self.id, track: publication.id, kind: kind, mid: "\(id)",
            ssrc: 0xa000_0000 | UInt32(truncatingIfNeeded: id),
            rtxSSRC: kind == .video && settings.hasRTX ? 0xb000_0000 | UInt32(truncatingIfNeeded: id) : nil,
            cname: "track\(id)",
            formats: formats.map { SessionTerms.accepted($0, hasRTX: settings.hasRTX) }, extensions: extensions,
            feedback: kinds, paused: paused,
            preference: preference)
        let view = View(description, spatialLayers: publication.video?.spatialLayers ?? 1, at: world.now)
        views.append(view)
        viewBySSRC[description.ssrc] = view
        if let rtx = description.rtxSSRC { viewBySSRC[rtx] = view }
        world.apply(.subscribe(description), on: worker)
        return view
    }

    /// Unsubscribes. Packets in flight are not faults.
    public func unsubscribe(_ view: View) {
        ownFaults += view.faults.map { "view \(view.id.rawValue): \($0)" }
        views.removeAll { $0 === view }
        world.apply(.unsubscribe(view.id), on: worker)
    }

    /// Selects another layer.
    public func prefer(_ preference: LayerPreference, of view: View) {
        world.apply(.setLayerPreference(view.id, preference), on: worker)
    }

    /// Sets the other preferences of a view.
    public func setDisplay(of view: View, _ change: (inout DisplayPreference) -> Void) {
        var display = DisplayPreference()
        change(&display)
        world.apply(.setDisplayPreference(view.id, display), on: worker)
    }

    /// Sets how its bandwidth is allocated.
    public func setPolicy(_ change: (inout DownlinkPolicy) -> Void) {
        var policy = DownlinkPolicy()
        change(&policy)
        world.apply(.setDownlinkPolicy(id, policy), on: worker)
    }

    /// Pauses or resumes a view.
    public func setPaused(_ paused: Bool, _ view: View) {
        world.apply(.setSubscriptionPaused(view.id, paused), on: worker)
    }

    /// Shows another track in the same section (WHEP follow mode); nil: none.
    public func show(_ publication: Publication?, in view: View) {
        if let publication { view.checker.allowedTracks.insert(publication.id.rawValue) }
        world.apply(.switchSubscription(view.id, to: publication?.id), on: worker)
    }

    // MARK: - Sending

    /// Sends what is due of a publication.
    func send(_ publication: Publication) {
        for packet in publication.duePackets(at: world.now, random: &random) { send(packet, of: publication) }
    }

    private func send(_ packet: MediaPacket, of publication: Publication) {
        transportSequence &+= 1
        let length = publication.streams[packet.layer].write(
            packet, transportSequence: transportSequence, at: world.now, into: world.slot)
        sendRTP(length)
    }

    /// Encrypts the packet in the world's slot and sends it.
    func sendRTP(_ length: Int) {
        guard let total = transport.protectRTP(world.slot, length: length) else { return }
        world.carryUp(UnsafeRawBufferPointer(rebasing: world.slot[..<total]), from: self)
    }

    /// The same for RTCP.
    func sendRTCP(_ length: Int) {
        guard let total = transport.protectRTCP(world.slot, length: length) else { return }
        world.carryUp(UnsafeRawBufferPointer(rebasing: world.slot[..<total]), from: self)
    }

    /// Sends what the transport has written.
    func flushTransport() {
        for entry in world.clientBatch.entries {
            world.carryUp(UnsafeRawBufferPointer(world.clientBatch.bytes(of: entry)), from: self)
        }
        world.clientBatch.removeAll()
        guard connectedAt == nil, transport.isConnected else { return }
        connectedAt = world.now
        feedback.begin(at: world.now, interval: settings.reportInterval)
        for publication in publications { publication.hold(until: world.now) }
    }
}
