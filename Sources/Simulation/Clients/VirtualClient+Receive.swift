import MediaControl
import Primitives
import RTP

extension VirtualClient {
    /// Decrypts an RTP packet that the server sends and checks it against the invariants; nil for anything else, and before there are keys.
    func inspect(_ datagram: UnsafeRawBufferPointer) -> UnsafeMutableRawBufferPointer? {
        guard datagram.count >= RTPHeader.fixedLength, DatagramKind(firstByte: datagram[0]) == .media,
            !RTCPType.contains(datagram[1])
        else { return nil }
        world.glass.copyMemory(from: datagram)
        let opened = transport.open(UnsafeMutableRawBufferPointer(rebasing: world.glass[..<datagram.count]))
        guard case .rtp(let length) = opened else {
            if let header = RTPHeader(datagram.bytes) { viewBySSRC[header.ssrc]?.checker.missed() }
            return nil
        }
        let clear = UnsafeMutableRawBufferPointer(rebasing: world.glass[..<length])
        let bytes = UnsafeRawBufferPointer(clear).bytes
        guard let header = RTPHeader(bytes) else {
            fault("what is sent is not RTP")
            return clear
        }
        guard let view = viewBySSRC[header.ssrc] else {
            fault("packet of unknown SSRC \(header.ssrc)")
            return clear
        }
        // Padding in the retransmission stream has separate numbers; on the media SSRC it uses one of the stream's.
        guard header.payloadLength > 0 || header.ssrc == view.description.ssrc else { return clear }
        if let facts = view.facts(bytes, header, descriptors: &view.sentDescriptors) {
            view.checker.check(facts)
        } else {
            fault("payload type \(header.payloadType) is not agreed, or an empty retransmission")
        }
        return clear
    }

    /// Receives one datagram from the server, which is in the world's slot. `isClear`: RTP that was decrypted already.
    func receive(_ datagram: UnsafeMutableRawBufferPointer, isClear: Bool) {
        let count = datagram.count
        let received =
            isClear
            ? .rtp(length: count)
            : transport.receive(datagram, from: world.workers[worker].address, at: world.now, into: &world.clientBatch)
        switch received {
        case .rtp(let length):
            traffic.rtpPackets += 1
            traffic.rtpBytes += count
            receiveRTP(UnsafeRawBufferPointer(rebasing: datagram[..<length]))
        case .rtcp(let length):
            traffic.rtcpDatagrams += 1
            traffic.rtcpBytes += count
            receiveRTCP(UnsafeRawBufferPointer(rebasing: datagram[..<length]))
        case .nothing:
            traffic.otherDatagrams += 1
            traffic.otherBytes += count
        case .dropped: traffic.refused += 1
        }
        flushTransport()
        schedule()
    }

    private func receiveRTP(_ packet: UnsafeRawBufferPointer) {
        world.digest.add(id.rawValue)
        world.digest.add(packet, at: world.now)
        guard let header = RTPHeader(packet.bytes), isKnown(header, packet.bytes) else { return }
        noteTransportSequence(header, packet.bytes)
        if settings.estimatesItself { estimate(packet.count) }
        guard let view = viewBySSRC[header.ssrc],
            header.payloadLength > 0 || header.ssrc == view.description.ssrc
        else { return }
        view.receive(packet.bytes, header: header, at: world.now)
        if view.description.kind == .video { feedback.scheduleRepair(of: view, at: world.now) }
    }

    /// Whether it knows which section the packet belongs to.
    private func isKnown(_ header: RTPHeader, _ packet: RawSpan) -> Bool {
        guard settings.learnsRTXByMID, let view = viewBySSRC[header.ssrc], header.ssrc == view.description.rtxSSRC,
            !view.knowsRTX
        else { return true }
        let id = SessionTerms.acceptedExtensions[.mid]
        view.knowsRTX = RTPHeaderExtensions.find(id, header, in: packet) != nil
        return view.knowsRTX
    }

    private func noteTransportSequence(_ header: RTPHeader, _ packet: RawSpan) {
        let id = SessionTerms.acceptedExtensions[.transportSequence]
        guard let element = RTPHeaderExtensions.find(id, header, in: packet),
            let number = TransportSequenceNumber(element, in: packet)
        else { return }
        feedback.arrived(
            number.value, at: world.now, interval: settings.transportFeedbackInterval,
            reportsLate: settings.reportsLatePackets)
    }

    /// What still waits behind the packet is what the client would see as a growing delay.
    private func estimate(_ length: Int) {
        let wait = downlink.backlog(at: world.now)
        guard let estimate = receiverEstimate.add(length, wait: wait, at: world.now) else { return }
        sendReceiverEstimate(estimate)
    }

    func fault(_ sentence: String) { if ownFaults.count < 6 { ownFaults.append(sentence) } }

    // MARK: - RTCP

    private func receiveRTCP(_ packet: UnsafeRawBufferPointer) {
        let datagram = packet.bytes
        guard var compound = RTCPCompound(datagram) else { return fault("malformed RTCP") }
        // Retransmissions are written into the world's slot, where the datagram still is: they wait until it is read.
        var asked: [(ssrc: UInt32, number: UInt16)] = []
        while let part = compound.next(in: datagram) {
            switch part {
            case .senderReport(let report):
                reportedSSRCs.insert(report.ssrc)
                viewBySSRC[report.ssrc]?.report.received(report, at: world.now)
                for index in 0..<report.blocks.count { receive(report.blocks.block(at: index, in: datagram)) }
            case .receiverReport(let report):
                for index in 0..<report.blocks.count { receive(report.blocks.block(at: index, in: datagram)) }
            case .nack(let nack):
                reportedSSRCs.insert(nack.mediaSSRC)
                for index in 0..<nack.count {
                    for number in nack.entry(at: index, in: datagram) { asked.append((nack.mediaSSRC, number)) }
                }
            case .pictureLoss(let request): keyframeRequested(request.mediaSSRC)
            case .fullIntraRequest(let request):
                for index in 0..<request.count { keyframeRequested(request.entry(at: index, in: datagram).ssrc) }
            case .transportFeedback(let report): receive(report, in: datagram)
            case .maximumBitrate(let estimate):
                maximumBitrate = .bitsPerSecond(Int64(clamping: estimate.bitsPerSecond))
            case .sourceDescription, .goodbye, .receiverReferenceTime, .delaySinceLastReceiverReport, .application,
                .unknown:
                break
            }
        }
        if compound.isMalformed { fault("malformed RTCP") }
        for item in asked { sendAgain(item.number, ofStream: item.ssrc) }
    }

    private func receive(_ block: ReportBlock) {
        reportedSSRCs.insert(block.ssrc)
        guard let (publication, layer) = stream(block.ssrc) else { return }
        publication.streams[layer].isKnown = true
        publication.streams[layer].fractionLost = block.fractionLost
    }

    private func receive(_ report: TransportFeedback, in datagram: RawSpan) {
        guard var reader = report.makeReader(in: datagram) else { return fault("malformed transport feedback") }
        while let status = reader.next(in: datagram) {
            feedbackReported += 1
            if status.arrival == nil { feedbackLost += 1 }
        }
    }

    private func keyframeRequested(_ ssrc: UInt32) {
        reportedSSRCs.insert(ssrc)
        guard let (publication, layer) = stream(ssrc) else { return }
        publication.streams[layer].keyframeRequests.append(world.now)
        publication.wantsKeyframe(ofLayer: layer)
    }

    private func sendAgain(_ number: UInt16, ofStream ssrc: UInt32) {
        guard let (publication, layer) = stream(ssrc) else { return }
        publication.streams[layer].nacks.append((world.now, number))
        guard settings.answersNACK else { return }
        transportSequence &+= 1
        let length = publication.streams[layer].writeAgain(
            number, transportSequence: transportSequence, at: world.now, into: world.slot)
        if let length { sendRTP(length) }
    }

    private func stream(_ ssrc: UInt32) -> (Publication, Int)? {
        for publication in publications {
            if let layer = publication.streams.firstIndex(where: { $0.ssrc == ssrc }) { return (publication, layer) }
        }
        return nil
    }
}
