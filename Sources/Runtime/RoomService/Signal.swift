/// Wakes one waiting loop; signals raised before it wakes are coalesced.
struct Signal: Sendable {
    /// An element for each time that the loop has to wake.
    let raised: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() { (raised, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

    func raise() { continuation.yield() }
}
