import HTTPServing

/// What the session needs of a WebSocket; tests replace it with a script.
protocol SignallingSocket: Sendable {
    /// What the client sends, in order; ends when the socket closes.
    var messages: AsyncStream<WebSocketMessage> { get }
    /// Queues a message; false if the socket accepts no more.
    @discardableResult
    func send(_ text: String) -> Bool
    /// Sends what is queued, then a close frame.
    func close(code: UInt16, reason: String)
}

extension WebSocketConnection: SignallingSocket {}

/// Close codes of martlet.v1 (Protocol.md section 9).
enum CloseCode {
    static let left: UInt16 = 1000
    static let goingAway: UInt16 = 1001
    static let unsupportedData: UInt16 = 1003
    static let policyViolation: UInt16 = 1008
    static let tryAgainLater: UInt16 = 1013
    static let joinTimeout: UInt16 = 4001
    static let resumedElsewhere: UInt16 = 4002
    static let removed: UInt16 = 4003
    static let duplicateIdentity: UInt16 = 4004
    static let roomDeleted: UInt16 = 4005
    static let tooSlow: UInt16 = 4006
    static let timeout: UInt16 = 4007
    static let ended: UInt16 = 4008
}
