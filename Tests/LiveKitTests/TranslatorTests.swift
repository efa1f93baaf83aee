import Rooms
import Testing

@testable import LiveKit

@Suite("Events in LiveKit's words")
struct TranslatorTests {
    @Test(
        "Whether a quality is received: by the layer's name in any order, by its spatial number, and the highest layer for all above",
        arguments: [
            ([WantedLayer(rid: "h", isWanted: true), WantedLayer(rid: "q", isWanted: false)], [false, true, true]),
            (
                [
                    WantedLayer(rid: "f", isWanted: false), WantedLayer(rid: "h", isWanted: true),
                    WantedLayer(rid: "q", isWanted: true),
                ], [true, true, false]
            ),
            (
                [
                    WantedLayer(rid: "2", isWanted: true), WantedLayer(rid: "1", isWanted: false),
                    WantedLayer(rid: "0", isWanted: false),
                ], [true, false, false]
            ),
            ([WantedLayer(rid: nil, isWanted: true)], [true, true, true]),
            ([WantedLayer(rid: nil, isWanted: false)], [false, false, false]),
            (
                [
                    WantedLayer(rid: nil, spatial: 0, isWanted: true),
                    WantedLayer(rid: nil, spatial: 1, isWanted: true),
                    WantedLayer(rid: nil, spatial: 2, isWanted: false),
                ], [true, true, false]
            ),
        ])
    func demands(layers: [WantedLayer], enabled: [Bool]) {
        #expect(EventTranslator.demands(layers).map(\.isEnabled) == enabled)
    }

    @Test("A client whose channel was closed because it read too slowly is told to connect anew")
    func slowReceiver() throws {
        var translator = EventTranslator(people: [])
        let event = RoomEvent.channelClosed(connection: "main", label: "_reliable", reason: "receiverTooSlow")
        let signals = translator.signals(for: SequencedEvent(sequence: 1, event: event))
        #expect(signals.count == 1)
        guard case .leave(_, .reconnect)? = signals.first else {
            Issue.record("\(signals)")
            return
        }
    }
}
