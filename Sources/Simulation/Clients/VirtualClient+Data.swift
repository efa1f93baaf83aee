public import DataChannels
import MediaControl
public import Primitives

// A client with data channels, over its links.

extension VirtualClient {
    /// Enables data channels from now on, and opens this one.
    public func openData(_ terms: DataChannelTerms, settings: DataChannelSettings = .init()) {
        let transport = DataTransport(port: DataChannelSettings.port, longestMessage: settings.longestMessage)
        world.apply(.acceptData(id, transport), on: worker)
        self.transport.useData(settings: settings, at: world.now)
        withData { _ = $0.open(terms, at: world.now) }
    }

    /// Calls `body` with its data channels now; what they then write is sent up the link.
    public func withData(_ body: (DataChannelSession) -> Void) {
        transport.withData(at: world.now, into: &world.clientBatch, body)
        flushTransport()
        schedule()
    }
}
