import MediaControl
import Testing

@testable import RoomService
@testable import Telemetry

@Suite("Metrics page")
struct MetricsPageTests {
    @Test("A family is help, type and its samples")
    func format() {
        var page = MetricsPage()
        page.add("rooms", .gauge, "Rooms.", 3)
        page.add("drops_total", .counter, "Drops.", [([("reason", "a\"b\\c")], 1.5)])
        #expect(
            page.text == """
                # HELP martlet_rooms Rooms.
                # TYPE martlet_rooms gauge
                martlet_rooms 3
                # HELP martlet_drops_total Drops.
                # TYPE martlet_drops_total counter
                martlet_drops_total{reason="a\\"b\\\\c"} 1.5

                """)
    }

    @Test("Names are unique, and counters end in _total")
    func names() {
        var page = MetricsPage()
        var worker = WorkerStatistics()
        worker.packetsForwarded = 12
        page.add(workers: [worker, worker])
        var rooms = RoomServiceStatistics()
        rooms.refusals = ["room_full": 2]
        page.add(rooms: rooms)
        let types = page.text.split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }.map { $0.split(separator: " ") }
        #expect(types.count > 30)
        #expect(Set(types.map { $0[2] }).count == types.count)
        for type in types { #expect((type[3] == "counter") == type[2].hasSuffix("_total"), "\(type[2])") }
        #expect(page.text.contains("martlet_packets_forwarded_total{worker=\"1\"} 12\n"))
        #expect(page.text.contains("martlet_refusals_total{code=\"room_full\"} 2\n"))
    }
}
