public import Primitives

extension MediaWorkerPool {
    /// RFC 8489 section 6.2.1: a request is repeated after 500 ms, then after twice as long each time; three requests are enough, because discovery is repeated
    /// anyway.
    private static let patience = [TimeSpan.milliseconds(500), .milliseconds(1_000), .milliseconds(2_000)]
    private static let pollInterval = TimeSpan.milliseconds(25)

    /// The address and port from which a STUN server sees each worker's socket, by worker; nil if no response came within 3.5 s. The requests leave from the
    /// sockets themselves, so that a NAT treats them as it will treat media.
    public func discover(_ server: SocketAddress) async -> [SocketAddress?] {
        var found = [SocketAddress?](repeating: nil, count: workers.count)
        for patience in Self.patience {
            for index in found.indices where found[index] == nil { _ = try? await ask(index) { $0.ask(server) } }
            var waited = TimeSpan.zero
            while waited < patience, found.contains(nil) {
                guard (try? await Task.sleep(for: .nanoseconds(Self.pollInterval.nanoseconds))) != nil else {
                    return found
                }
                waited = waited + Self.pollInterval
                for index in found.indices where found[index] == nil {
                    found[index] = (try? await ask(index) { $0.consumeMappedAddress() }) ?? nil
                }
            }
            if !found.contains(nil) { return found }
        }
        for index in found.indices where found[index] == nil { _ = try? await ask(index) { $0.stopAsking() } }
        return found
    }
}
