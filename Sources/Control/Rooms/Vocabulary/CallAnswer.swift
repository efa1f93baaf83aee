/// A member's reply to a call of the application's server.
public struct CallAnswer: Sendable, Hashable {
    /// One step of the reply.
    public enum Outcome: Sendable, Hashable {
        /// The call has arrived; its result follows.
        case acknowledged
        case returned(String)
        /// Code and message in the member's protocol.
        case failed(code: Int, message: String, data: String)
    }

    /// The number of the call.
    public var call: String
    public var outcome: Outcome

    /// A reply to the call with this number.
    public init(call: String, _ outcome: Outcome) {
        self.call = call
        self.outcome = outcome
    }
}
