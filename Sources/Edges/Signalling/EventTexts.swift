import EdgeSupport
import RoomService
import Rooms
import Synchronization

/// The frames of events. An event for a whole room is encoded once, not for each of a thousand readers.
final class EventTexts: Sendable {
    /// Readers that keep up are a few events apart; for a slower one, events are encoded again.
    private static let capacity = 64

    /// Texts by event, and the events in the order in which they came, each of which replaces the oldest one.
    private struct Recent {
        var texts: [RoomEvent: String] = [:]
        var events: [RoomEvent] = []
        var oldest = 0

        mutating func add(_ text: String, for event: RoomEvent) {
            guard texts.updateValue(text, forKey: event) == nil else { return }
            guard events.count == capacity else { return events.append(event) }
            texts[events[oldest]] = nil
            events[oldest] = event
            oldest = (oldest + 1) % capacity
        }
    }

    private let recent = Mutex(Recent())

    /// The text of the frame that carries `event` to a session.
    func text(of event: SequencedEvent) -> String { "{\"seq\":\(event.sequence),\(fields(of: event.event))" }

    /// Type and fields as JSON, without the brace that opens the object.
    private func fields(of event: RoomEvent) -> String {
        guard event.isForMany else { return Self.encode(event) }
        if let known = recent.withLock({ $0.texts[event] }) { return known }
        let text = Self.encode(event)
        recent.withLock { $0.add(text, for: event) }
        return text
    }

    private static func encode(_ event: RoomEvent) -> String {
        String(JSONCoding.encodeText(EventFields(event: event)).dropFirst())
    }
}

private struct EventFields: Encodable {
    let event: RoomEvent

    func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: AnyKey.self)
        try event.encode(to: &fields)
    }
}

extension RoomEvent {
    /// Whether the same event is sent to many sessions.
    fileprivate var isForMany: Bool {
        switch self {
        case .participantJoined, .participantUpdated, .participantLeft, .trackPublished, .trackUpdated,
            .trackUnpublished, .speakersChanged, .dominantSpeakerChanged, .qualityChanged, .messageReceived,
            .roomUpdated:
            true
        default: false
        }
    }
}
