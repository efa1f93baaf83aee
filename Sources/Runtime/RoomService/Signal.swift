/// Wakes one loop that waits: several wishes before it wakes are one.
struct Signal: Sendable {
    /// An element for each time that the loop has to wake.
    let raised: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() { (raised, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

    func raise() { continuation.yield() }
}
