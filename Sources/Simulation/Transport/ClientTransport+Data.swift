internal import DTLS
public import DataChannels
internal import MediaControl
public import Primitives

// The client's data channels. It opens them itself, as browsers do.

extension ClientTransport {
    /// Serves data channels from now on; `longestMessage` is the limit in the server's answer.
    public func useData(settings: DataChannelSettings = .init(), longestMessage: Int = 65_536, at now: MonotonicTime) {
        let session = DataChannelSession(
            settings: settings, remotePort: DataChannelSettings.port, longestRemoteMessage: longestMessage,
            isDTLSClient: behaviour.role == .client, random: RandomSource(seed: 11))
        data = session
        startData(at: now)
    }

    /// DTLS is up: SCTP begins.
    func startData(at now: MonotonicTime) {
        guard isConnected, let data, !isDataStarted else { return }
        isDataStarted = true
        data.start(at: now)
        // The client sends INIT at once.
        data.advance(to: data.nextDeadline)
    }

    /// Passes on what DTLS received, and writes what is due.
    func receiveData(at now: MonotonicTime, into output: inout OutboundBatch) {
        for index in 0..<context.dtls.applicationData.count {
            _ = data?.receive(context.dtls.applicationData.packet(index), at: now)
        }
        context.dtls.applicationData.removeAll()
        writeData(at: now, into: &output)
    }

    /// Runs the timers of the data channels.
    func advanceData(to now: MonotonicTime, into output: inout OutboundBatch) {
        guard let data, isConnected else { return }
        if data.nextDeadline <= now { data.advance(to: now) }
        writeData(at: now, into: &output)
    }

    /// Opens a channel, or sends on one, and writes the resulting packets.
    public func withData(
        at now: MonotonicTime, into output: inout OutboundBatch, _ body: (DataChannelSession) -> Void
    ) {
        if let data { body(data) }
        writeData(at: now, into: &output)
    }

    private func writeData(at now: MonotonicTime, into output: inout OutboundBatch) {
        guard let data, let dtls, isConnected, !isMute else { return }
        var packet = [UInt8](repeating: 0, count: DataChannelSession.largestPacket)
        while output.hasRoom(for: packet.count + DTLSAssociation.recordOverhead) {
            let length = packet.withUnsafeMutableBytes { data.write(into: $0, at: now, allowsData: true) }
            guard length > 0 else { return }
            _ = packet[..<length].withUnsafeBytes { dtls.send($0, to: destination, into: &output) }
        }
    }
}
