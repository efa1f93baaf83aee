import EdgeSupport
import HTTPServing
import MediaControl
import MediaWorkers
import Primitives
import Rooms
import Testing

@testable import RoomService
@testable import Telemetry
@testable import Webhooks

@Suite("Metrics page")
struct MetricsPageTests {
    @Test("A metric family is help, type and its samples")
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

    @Test(
        "A label's value and a help text stay on their line: backslashes and line feeds are escaped in both, quotes in values",
        arguments: [
            (#"a"b\c"#, #"a\"b\\c"#, #"a"b\\c"#), ("a\nb", #"a\nb"#, #"a\nb"#), ("a\r\nb", "a\r\\nb", "a\r\\nb"),
            ("a\"\u{301}", "a\\\"\u{301}", "a\"\u{301}"), ("\\\u{301}n", "\\\\\u{301}n", "\\\\\u{301}n"),
        ])
    func escaping(text: String, value: String, help: String) {
        var page = MetricsPage()
        page.add("a", .gauge, text, [([("b", text)], 1)])
        page.addHistogram("c", text, bounds: [1], [(label: (name: "d", value: text), counts: [0, 1], sum: 2)])
        let lines = [
            "# HELP martlet_a \(help)", "# TYPE martlet_a gauge", "martlet_a{b=\"\(value)\"} 1",
            "# HELP martlet_c \(help)", "# TYPE martlet_c histogram", "martlet_c_bucket{d=\"\(value)\",le=\"1.0\"} 0",
            "martlet_c_bucket{d=\"\(value)\",le=\"+Inf\"} 1", "martlet_c_sum{d=\"\(value)\"} 2",
            "martlet_c_count{d=\"\(value)\"} 1",
        ]
        #expect(Array(page.text.utf8) == Array(lines.map { $0 + "\n" }.joined().utf8))
    }

    @Test("Names are unique, and names of counters end in _total")
    func names() {
        var page = MetricsPage()
        var worker = WorkerStatistics()
        worker.packetsForwarded = 12
        worker.probes.count(.raised)
        worker.probes.count(.unanswered)
        worker.data.ignored = 3
        worker.segmentationRefused = 1
        worker.handshakeFailures = [.noCommonCipher: 2]
        page.add(workers: [worker, worker])
        var rooms = RoomServiceStatistics()
        rooms.refusals = ["room_full": 2]
        page.add(rooms: rooms)
        page.add(load: LoadGate(workers: 2).report)
        page.add(http: HTTPServerStatistics())
        page.add(process: .now())
        let types = page.text.split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }.map { $0.split(separator: " ") }
        #expect(types.count > 30)
        #expect(Set(types.map { $0[2] }).count == types.count)
        for type in types { #expect((type[3] == "counter") == type[2].hasSuffix("_total"), "\(type[2])") }
        #expect(page.text.contains("martlet_packets_forwarded_total{worker=\"1\"} 12\n"))
        #expect(page.text.contains("martlet_probes_total{outcome=\"raised\"} 2\n"))
        #expect(page.text.contains("martlet_probes_total{outcome=\"unanswered\"} 2\n"))
        #expect(page.text.contains("martlet_probes_total{outcome=\"unclear\"} 0\n"))
        #expect(page.text.contains("martlet_messages_ignored_total 6\n"))
        #expect(page.text.contains("martlet_dtls_failures_total{cause=\"noCommonCipher\"} 4\n"))
        #expect(page.text.contains("martlet_dtls_failures_total{cause=\"refusedByPeer\"} 0\n"))
        #expect(page.text.contains("martlet_segmentation_refused_total{worker=\"1\"} 1\n"))
        #expect(page.text.contains("martlet_refusals_total{code=\"room_full\"} 2\n"))
    }

    @Test("The answer of a database that hangs is not waited for", .timeLimit(.minutes(1)))
    func hangingDatabase() async {
        let (gate, opening) = AsyncStream<Void>.makeStream()
        let hanging = await TelemetryEdge.within(.milliseconds(1)) {
            // A task that is cancelled ends this wait; a disk goes on.
            await Task { for await _ in gate {} }.value
            return 1
        }
        #expect(hanging == nil)
        opening.finish()
        let found = await TelemetryEdge.within(.seconds(3_600)) { 2 }
        #expect(found == 2)
    }

    @Test("Transit times of all workers are one histogram: cumulative, in seconds, ending with +Inf")
    func transit() {
        var one = WorkerStatistics(), other = WorkerStatistics()
        one.transit.add(90, .microseconds(20))
        one.transit.add(9, .microseconds(250))
        other.transit.add(1, .milliseconds(70))
        var page = MetricsPage()
        page.add(workers: [one, other])
        #expect(page.text.contains("# TYPE martlet_transit_seconds histogram\n"))
        for line in [
            "_bucket{le=\"2e-05\"} 90", "_bucket{le=\"0.0002\"} 90", "_bucket{le=\"0.0003\"} 99",
            "_bucket{le=\"0.05\"} 99",
            "_bucket{le=\"+Inf\"} 100", "_count 100",
        ] { #expect(page.text.contains("martlet_transit_seconds\(line)\n"), "\(line)") }
        #expect(one.transit.count == 99)
    }

    @Test("Memory, CPU time, descriptors and threads of the process are reported")
    func process() {
        let report = ProcessReport.now()
        #expect(report.cpuSeconds > 0 && report.residentBytes > 1 << 20)
        #expect(report.openDescriptors > 2 && report.descriptorLimit >= UInt64(report.openDescriptors))
        #expect(report.threads > 0)
        #expect(report.startedAt > 1_700_000_000, "seconds since 1970, in this century")
    }

    @Test("Webhooks are reported by name, and the time to connect as a histogram in seconds")
    func webhooksAndConnecting() {
        let webhook = Webhook(name: "billing", url: "https://e.com", signer: .secret("sixteen bytes or more"))
        var page = MetricsPage()
        page.add(webhooks: [
            WebhookStatus(webhook: webhook, state: .parked, queued: 7, delivered: 3, lost: 1, lastError: "gone")
        ])
        for line in ["failing", "events_lost_total"] {
            #expect(page.text.contains("martlet_webhook_\(line){webhook=\"billing\"} 1\n"))
        }
        #expect(page.text.contains("martlet_webhook_events_queued{webhook=\"billing\"} 7\n"))
        #expect(!page.text.contains("sixteen") && !page.text.contains("e.com"))
        var rooms = RoomServiceStatistics()
        rooms.connectTimes.add(120)
        rooms.connectTimes.add(20_000)
        rooms.joinSteps[.dtls, default: ConnectTimes()].add(120)
        rooms.tokenVerification.add(0.000_2)
        page.add(rooms: rooms)
        for line in [
            "_bucket{le=\"0.1\"} 0", "_bucket{le=\"0.2\"} 1", "_bucket{le=\"10.0\"} 1", "_bucket{le=\"+Inf\"} 2",
            "_sum 20.12", "_count 2",
        ] {
            #expect(page.text.contains("martlet_connect_seconds\(line)\n"), "\(line)")
        }
        for line in [
            "join_step_seconds_bucket{step=\"dtls\",le=\"0.1\"} 0",
            "join_step_seconds_bucket{step=\"dtls\",le=\"0.2\"} 1",
            "join_step_seconds_sum{step=\"dtls\"} 0.12", "join_step_seconds_count{step=\"sentVideo\"} 0",
            "token_verification_seconds_bucket{le=\"0.0001\"} 0", "token_verification_seconds_bucket{le=\"0.00025\"} 1",
        ] {
            #expect(page.text.contains("martlet_\(line)\n"), "\(line)")
        }
    }

    @Test(
        "What participants' networks do are histograms of all of them, and freezes are counted as clients report them")
    func network() {
        var rooms = RoomServiceStatistics()
        var conditions = NetworkConditions()
        conditions.loss = 0.04
        conditions.roundTrip = .milliseconds(60)
        rooms.network.add(loss: 0.04, conditions, estimate: .kilobitsPerSecond(900))
        rooms.network.add(loss: nil, NetworkConditions(), estimate: nil)
        rooms.freezes = Freezes(count: 3, duration: .milliseconds(1_500))
        var page = MetricsPage()
        page.add(rooms: rooms)
        for line in [
            "subscriber_loss_ratio_bucket{le=\"0.02\"} 0", "subscriber_loss_ratio_bucket{le=\"0.05\"} 1",
            "subscriber_loss_ratio_count 1", "round_trip_seconds_bucket{le=\"0.1\"} 1", "round_trip_seconds_count 1",
            "participant_quality_bucket{le=\"3.0\"} 1", "participant_quality_bucket{le=\"5.0\"} 2",
            "subscriber_estimate_bytes_per_second_bucket{le=\"62500.0\"} 0",
            "subscriber_estimate_bytes_per_second_bucket{le=\"125000.0\"} 1",
            "subscriber_estimate_bytes_per_second_sum 112500", "participant_quality_sum 8", "video_freezes_total 3",
            "video_freeze_seconds_total 1.5",
        ] {
            #expect(page.text.contains("martlet_\(line)\n"), "\(line)")
        }
    }

    @Test("Calls of the API are timed by operation and counted by the code of their refusal")
    func calls() {
        let statistics = CallStatistics()
        statistics.add("GET /v1/rooms/{room}", .microseconds(300), refusal: nil)
        statistics.add("GET /v1/rooms/{room}", .milliseconds(70), refusal: nil)
        statistics.add("POST /v1/rooms", .microseconds(100), refusal: "name_taken")
        var page = MetricsPage()
        page.add(calls: statistics.counts)
        let room = "operation=\"GET /v1/rooms/{room}\""
        for line in [
            "api_call_seconds_bucket{\(room),le=\"0.001\"} 1", "api_call_seconds_bucket{\(room),le=\"0.1\"} 2",
            "api_call_seconds_count{\(room)} 2", "api_call_seconds_count{operation=\"POST /v1/rooms\"} 1",
            "api_refusals_total{code=\"name_taken\"} 1", "api_refusals_total{code=\"rate_limited\"} 0",
        ] {
            #expect(page.text.contains("martlet_\(line)\n"), "\(line)")
        }
        var none = MetricsPage()
        none.add(calls: CallStatistics().counts)
        #expect(!none.text.contains("api_call_seconds"), "a family without samples would be malformed")
    }

    @Test("The times of turns of all workers are one histogram, and sessions of WHIP and WHEP are counted apart")
    func turnsAndHTTPSessions() {
        var one = WorkerStatistics(), other = WorkerStatistics()
        one.turnTimes.add(1, .microseconds(250))
        other.turnTimes.add(1, .milliseconds(7))
        var rooms = RoomServiceStatistics()
        (rooms.whipSessions, rooms.whepSessions) = (2, 5)
        var page = MetricsPage()
        page.add(workers: [one, other])
        page.add(rooms: rooms)
        for line in [
            "worker_turn_seconds_bucket{le=\"0.0003\"} 1", "worker_turn_seconds_bucket{le=\"0.01\"} 2",
            "worker_turn_seconds_count 2", "http_sessions{protocol=\"whip\"} 2", "http_sessions{protocol=\"whep\"} 5",
        ] {
            #expect(page.text.contains("martlet_\(line)\n"), "\(line)")
        }
    }

    @Test("Every reason for a drop, a departure and a closed connection has a sample, so that a rate starts at zero")
    func reasons() {
        var page = MetricsPage()
        page.add(workers: [WorkerStatistics()])
        var rooms = RoomServiceStatistics()
        rooms.departures["left"] = 2
        page.add(rooms: rooms)
        for reason in LeaveReason.allCases {
            let count = reason == .left ? 2 : 0
            #expect(page.text.contains("martlet_departures_total{reason=\"\(reason.rawValue)\"} \(count)\n"))
        }
        for reason in PeerEndReason.allCases {
            #expect(page.text.contains("martlet_connections_closed_total{reason=\"\(reason.rawValue)\"} 0\n"))
        }
        for reason in DropReason.allCases {
            #expect(page.text.contains("martlet_packets_dropped_total{reason=\"\(reason)\"} 0\n"))
        }
    }

    @Test("A worker that hangs is named; its figures are left out, and totals do not restart")
    func hungWorker() {
        var one = WorkerStatistics(), other = WorkerStatistics()
        one.packetsForwarded = 5
        other.packetsForwarded = 7
        other.transit.add(3, .microseconds(20))
        other.hangs = true
        var page = MetricsPage()
        page.add(hangsOf: [one, other])
        page.add(workers: [one, other])
        #expect(page.text.contains("martlet_worker_hangs{worker=\"0\"} 0\nmartlet_worker_hangs{worker=\"1\"} 1\n"))
        #expect(page.text.contains("martlet_packets_forwarded_total{worker=\"0\"} 5\n"))
        #expect(!page.text.contains("martlet_packets_forwarded_total{worker=\"1\"}"))
        #expect(page.text.contains("martlet_transit_seconds_count 3\n"))
    }

    @Test("A process is live while its media threads take turns; one that hangs is named with 503")
    func liveness() {
        let alive = TelemetryEdge.liveness([])
        #expect(alive.status == 200 && String(decoding: alive.body, as: UTF8.self) == "alive\n")
        let hung = TelemetryEdge.liveness([.init(index: 3, stillFor: .milliseconds(7_400))])
        #expect(hung.status == 503)
        #expect(
            String(decoding: hung.body, as: UTF8.self)
                == "media worker 3 is not responding: its event loop has been blocked for 7 s\n")
    }

    @Test("A process is ready when it has started, is not shutting down, and its media threads take turns")
    func readiness() {
        #expect(TelemetryEdge.readiness(isReady: true, []).status == 200)
        #expect(TelemetryEdge.readiness(isReady: false, []).status == 503)
        let hung = TelemetryEdge.readiness(isReady: true, [.init(index: 0, stillFor: .seconds(5))])
        #expect(hung.status == 503)
        #expect(
            String(decoding: hung.body, as: UTF8.self)
                == "media worker 0 is not responding: its event loop has been blocked for 5 s\n")
    }
}
