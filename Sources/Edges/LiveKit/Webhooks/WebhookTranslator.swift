import CLiveKitProtocol
public import EdgeSupport
public import Recorder
public import RoomService
import Rooms
import Synchronization

/// Writes events of the log as LiveKit's servers post them. Each event shows the room and the participant, so these are kept here.
public final class WebhookTranslator: Sendable {
    /// One request.
    public struct Message: Sendable, Hashable {
        public var id: String
        public var type: LiveKitEventType
        /// A `WebhookEvent` as protobuf's JSON.
        public var body: [UInt8]
    }

    private struct State {
        var rooms: [String: WebhookRoom] = [:]
        /// sids of participants on their way from one room to another, connected.
        var moving: Set<String> = []
    }

    private let state = Mutex(State())
    private let recording: @Sendable (_ sid: String) -> RecordingSummary?

    /// `recording` finds a recording by its sid.
    public init(recording: @escaping @Sendable (_ sid: String) -> RecordingSummary?) { self.recording = recording }

    /// The messages to post for an event; none if they are not wanted. Every event must be passed in, in order, wanted or not.
    public func messages(for entry: RoomLogEntry, areWanted: Bool = true) -> [Message] {
        let news = state.withLock { Self.apply(entry, to: &$0) }
        guard areWanted else { return [] }
        return news.enumerated().compactMap { index, news in
            // Positions in the log are unique; one event in it may become several here.
            let id = "EV_\(entry.cursor.text)" + (index == 0 ? "" : ".\(index)")
            return body(of: news, id: id, at: entry.at).map { Message(id: id, type: news.type, body: $0) }
        }
    }

    private static func apply(_ entry: RoomLogEntry, to state: inout State) -> [WebhookNews] {
        guard !entry.concernsServer else { return [] }
        let isCurrent = state.rooms[entry.room]?.info.sid == entry.roomSID
        if !isCurrent {
            // The files of a recording may be finished after the end of its room, when another room has its name.
            switch entry.event {
            case .recording, .captureChanged:
                var former = WebhookRoom(entry)
                return former.apply(entry.event)
            default: break
            }
            state.rooms[entry.room] = WebhookRoom(entry)
        }
        defer { if entry.event == .roomEnded { state.rooms[entry.room] = nil } }
        var news = state.rooms[entry.room]?.apply(entry.event) ?? []
        switch entry.event {
        case .participantLeft(let info, _, hasConnected: true, keepsConnections: true): state.moving.insert(info.sid)
        case .participantJoined(let info) where state.moving.remove(info.sid) != nil:
            // Its connections are up already.
            news += state.rooms[entry.room]?.connect(info.sid) ?? []
        default: break
        }
        return news
    }

    /// nil if the recording is no longer known.
    private func body(of news: WebhookNews, id: String, at milliseconds: Int64) -> [UInt8]? {
        let arena = MessageArena()
        let event = arena.make(livekit__webhook_event__init) { event in
            event.id = arena.text(id)
            event.event = arena.text(news.type.rawValue)
            event.created_at = milliseconds / 1_000
        }
        switch news.subject {
        case .room: event.pointee.room = arena.room(news.room)
        case .participant(let info, let reason):
            event.pointee.room = arena.room(news.room)
            event.pointee.participant = arena.participant(
                info,
                state: reason == nil
                    ? LIVEKIT__PARTICIPANT_INFO__STATE__ACTIVE : LIVEKIT__PARTICIPANT_INFO__STATE__DISCONNECTED)
            if let reason { event.pointee.participant.pointee.disconnect_reason = reason.number }
        case .track(let track, let name):
            event.pointee.room = arena.room(news.room)
            event.pointee.track = arena.track(track)
            event.pointee.participant = arena.make(livekit__participant_info__init) { info in
                info.sid = arena.text(track.participant)
                info.identity = arena.text(track.identity)
                info.name = arena.text(name)
                info.state = LIVEKIT__PARTICIPANT_INFO__STATE__ACTIVE
            }
        case .recording(let sid):
            guard let summary = recording(sid) else { return nil }
            event.pointee.egress_info = arena.egress(
                EgressModel(summary, isEnding: news.type == .egressUpdated && summary.endedAt != nil))
        }
        // protobuf's JSON omits members that have their default.
        let style = MessageJSON.Style(usesCamelCase: true, writesDefaults: false)
        return withExtendedLifetime(arena) { JSONCoding.encode(MessageJSON.value(of: event, style: style)) }
    }
}
