import SDP

/// The connections of a member that have ended. Descriptions of them may still be under way, or be sent again after a resume, and would be applied to the
/// connections that have their names now.
struct FormerConnections: Sendable {
    /// This many user names are kept: of some moves in a row, with two connections each.
    private static let maximum = 16

    /// The client's ICE user names, which no other of its connections may use (RFC 8445 section 5.3); the latest last.
    private var ufrags: [String] = []
    /// The first mid that no offer of the server used on the receiving connection, so that an answer to one of those offers does not match the next offer.
    private(set) var nextMid = 0

    /// The connection ends.
    mutating func add(_ connection: Connection) {
        if connection.id == Room.serverConnection { nextMid = max(nextMid, connection.negotiation.nextMid) }
    }

    /// The connection ends by a move, of which its client is notified later: until then, it may make offers on it.
    mutating func addMoved(_ connection: Connection) {
        add(connection)
        guard let ufrag = connection.negotiation.remoteTransport?.iceUfrag else { return }
        ufrags = (ufrags + [ufrag]).suffix(Self.maximum)
    }

    /// Refuses the description of a connection that has ended.
    func check(_ transport: TransportFacts?) throws(RoomError) {
        guard let transport, ufrags.contains(transport.iceUfrag) else { return }
        throw RoomError(
            .connectionNotFound,
            "the connection that the description belongs to ended when the participant was moved: make a new one")
    }
}
