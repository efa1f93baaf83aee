/// Who receives which data track, and the numbers that frames carry on the way there.
///
/// Two publishers may have the same number for different tracks, so each track has one of the room's, the same for all who receive it: a frame is written once.
struct DataTracks: Sendable {
    private var streams: [String: Stream] = [:]
    private var sidByNumber: [UInt16: String] = [:]
    private var lastNumber: UInt16 = 0

    private struct Stream: Sendable {
        let publisher: SessionID
        let number: UInt16
        /// In the order in which they subscribed.
        var receivers: [SessionID] = []
    }

    /// A new track, or one that comes with its publisher from another room; who subscribes to all of them receives it at once.
    mutating func add(_ sid: String, of publisher: SessionID, _ roster: Roster) {
        repeat { lastNumber &+= 1 } while lastNumber == 0 || sidByNumber[lastNumber] != nil
        sidByNumber[lastNumber] = sid
        let receivers = roster.sessions.filter { $0 != publisher && roster[$0]?.subscribesToDataTracks == true }
        streams[sid] = Stream(publisher: publisher, number: lastNumber, receivers: receivers)
    }

    /// Returns those who received it.
    mutating func remove(_ sid: String) -> [SessionID] {
        guard let stream = streams.removeValue(forKey: sid) else { return [] }
        sidByNumber[stream.number] = nil
        return stream.receivers
    }

    /// A member that subscribes to all of them has come.
    mutating func subscribeToAll(_ session: SessionID) {
        for sid in streams.keys where streams[sid]?.publisher != session { streams[sid]?.receivers.append(session) }
    }

    /// Nothing changes where the member receives the track already, or publishes it. Throws `track_not_found`.
    mutating func subscribe(_ session: SessionID, to sid: String) throws(RoomError) {
        guard let stream = streams[sid] else { throw RoomError(.trackNotFound, "there is no such data track") }
        guard stream.publisher != session, !stream.receivers.contains(session) else { return }
        streams[sid]?.receivers.append(session)
    }

    mutating func unsubscribe(_ session: SessionID, from sid: String) {
        streams[sid]?.receivers.removeAll { $0 == session }
    }

    /// The member receives none any more.
    mutating func unsubscribeFromAll(_ session: SessionID) {
        for sid in streams.keys { unsubscribe(session, from: sid) }
    }

    /// All that a member receives, in the order of their numbers.
    func received(by session: SessionID, _ roster: Roster) -> [ReceivedDataTrack] {
        streams.filter { $0.value.receivers.contains(session) }.compactMap { sid, stream in
            roster[stream.publisher].map { publisher in
                ReceivedDataTrack(
                    number: stream.number, track: sid, participant: publisher.info.sid,
                    identity: publisher.info.identity)
            }
        }.sorted { $0.number < $1.number }
    }

    /// The number of a frame for its receivers, and who these are; nil where its sender publishes no such track.
    func route(handle: UInt16, of sender: Member) -> (number: UInt16, receivers: [SessionID])? {
        sender.info.dataTracks.first { $0.handle == handle }.flatMap { streams[$0.sid] }.map {
            ($0.number, $0.receivers)
        }
    }
}
