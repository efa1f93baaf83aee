import Primitives

/// The channels of one peer, by stream. Applications know them by label: some clients give stream ids in arbitrary order.
struct ChannelTable {
    enum State { case opening, open, closing }

    struct Channel {
        var stream: UInt16
        var terms: DataChannelTerms
        var state: State
    }

    private let limit: Int
    /// The DTLS client gives even ids, the server odd ones (RFC 8832 section 6).
    private let firstStream: UInt16
    private var channels: [Channel] = []
    /// The streams of lossy channels: messages are looked up here far more often than channels change.
    private var lossyStreams: [UInt16] = []

    init(limit: Int, isDTLSClient: Bool) {
        self.limit = limit
        firstStream = isDTLSClient ? 0 : 1
    }

    var isFull: Bool { channels.count >= limit }
    /// Whether there is a lossy channel, those that are being closed included.
    var hasLossy: Bool { !lossyStreams.isEmpty }
    /// Whether the channel on a stream is lossy; false where there is none.
    func isLossy(_ stream: UInt16) -> Bool { lossyStreams.contains(stream) }
    /// The terms of all channels that are not being closed.
    var labels: [String] { channels.filter { $0.state != .closing }.map(\.terms.label) }

    func channel(on stream: UInt16) -> Channel? { channels.first { $0.stream == stream } }
    /// The usable channel with this label; the oldest if there are several.
    func channel(labelled label: String) -> Channel? {
        channels.first { $0.terms.label == label && $0.state != .closing }
    }

    /// Adds a channel that the peer opened.
    mutating func add(_ terms: DataChannelTerms, on stream: UInt16) {
        remove(stream)
        append(Channel(stream: stream, terms: terms, state: .open))
    }

    /// Adds a channel of this side; returns its stream.
    mutating func open(_ terms: DataChannelTerms) -> UInt16? {
        guard !isFull else { return nil }
        var stream = firstStream
        while channel(on: stream) != nil { stream += 2 }
        append(Channel(stream: stream, terms: terms, state: .opening))
        return stream
    }

    private mutating func append(_ channel: Channel) {
        channels.append(channel)
        if channel.terms.reliability != .reliable { lossyStreams.append(channel.stream) }
    }

    /// Sets the state of the channel on a stream.
    mutating func set(_ state: State, on stream: UInt16) {
        if let index = channels.firstIndex(where: { $0.stream == stream }) { channels[index].state = state }
    }

    /// Removes the channel: its stream may be used again.
    mutating func remove(_ stream: UInt16) {
        channels.removeAll { $0.stream == stream }
        lossyStreams.removeAll { $0 == stream }
    }

    /// Removes all; returns the labels of those that were in use.
    mutating func removeAll() -> [String] {
        defer { (channels, lossyStreams) = ([], []) }
        return labels
    }

    /// The streams in use.
    var streams: [UInt16] { channels.map(\.stream) }
}
