public import Primitives

/// The last flight, kept in case the peer's address changes.
struct Flight {
    /// Maximum repeats of one association's flight because of address changes: a phone that changes between two networks with two addresses each.
    static let maximumRepeats = 4
    /// The peer's own timer has already requested older ones.
    static let lifetime = DTLSAssociation.maximumRetransmission

    /// Maximum answers to a peer that repeats its Finished, as many as OpenSSL sends.
    static let maximumAnswers = 12

    fileprivate var bytes: [UInt8] = []
    /// Where each datagram ends.
    fileprivate var ends: [Int] = []
    fileprivate var destination = SocketAddress(ipv4: 0, port: 0)
    fileprivate var sentAt = MonotonicTime.zero
    fileprivate var repeats = 0
    fileprivate var answers = 0

    var isEmpty: Bool { ends.isEmpty }

    fileprivate func write(into output: inout OutboundBatch) {
        bytes.withUnsafeBytes { bytes in
            var start = 0
            for end in ends {
                _ = output.append(UnsafeRawBufferPointer(rebasing: bytes[start..<end]), to: destination)
                start = end
            }
        }
    }
}

extension DTLSAssociation {
    /// The peer's address has changed since the last flight: sends the flight there at once, unchanged.
    ///
    /// It may have been lost with the old address, and the retransmission timer, doubled each time, would take up to 4 s to detect that. Repeating
    /// the same records does not count as an OpenSSL retransmission, and a peer that has them drops them (RFC 6347 section 4.1.2.6).
    public func follow(to destination: SocketAddress, at now: MonotonicTime, into output: inout OutboundBatch) {
        switch state {
        case .handshaking, .connected: break
        case .idle, .ended: return
        }
        guard !lastFlight.isEmpty, lastFlight.destination != destination, now - lastFlight.sentAt <= Flight.lifetime,
            lastFlight.repeats < Flight.maximumRepeats
        else { return }
        lastFlight.repeats += 1
        lastFlight.destination = destination
        lastFlight.write(into: &output)
    }

    /// The peer repeats its Finished, so the server's last flight was lost: sends the same records, which nobody else can forge.
    func repeatLastFlight(to destination: SocketAddress, into output: inout OutboundBatch) {
        guard role == .server, lastFlight.answers < Flight.maximumAnswers else { return }
        lastFlight.answers += 1
        lastFlight.destination = destination
        lastFlight.write(into: &output)
    }

    /// Passes the datagrams that OpenSSL wrote to the caller, and keeps them. Datagrams that do not fit are lost, as on any network; the timer repairs that.
    func flush(at now: MonotonicTime, to destination: SocketAddress, into output: inout OutboundBatch) {
        guard !pipe.ends.isEmpty else { return }
        lastFlight.sentAt = now
        write(to: destination, into: &output)
    }

    /// Passes on records that OpenSSL wrote after the handshake; the last flight stays what it was.
    func writeData(to destination: SocketAddress, into output: inout OutboundBatch) {
        pipe.outbound.withUnsafeBytes { bytes in
            var start = 0
            for end in pipe.ends {
                _ = output.append(UnsafeRawBufferPointer(rebasing: bytes[start..<end]), to: destination)
                start = end
            }
        }
        pipe.ends.removeAll()
        pipe.outbound.removeAll()
    }

    /// Passes on what OpenSSL wrote.
    func write(to destination: SocketAddress, into output: inout OutboundBatch) {
        guard !pipe.ends.isEmpty else { return }
        lastFlight.bytes = pipe.outbound
        lastFlight.ends = pipe.ends
        lastFlight.destination = destination
        lastFlight.write(into: &output)
        pipe.ends.removeAll()
        pipe.outbound.removeAll()
    }
}
