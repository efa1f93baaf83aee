import EdgeSupport
import HTTPServing
import MediaControl
import Primitives
import RoomService
import Rooms
import Tracing
import Webhooks

extension MetricsPage {
    /// Which media workers hang.
    mutating func add(hangsOf workers: [WorkerStatistics]) {
        add(
            "worker_hangs", .gauge, "1 while the event loop of a media worker does not respond.",
            workers.enumerated().map { ([("worker", String($0.offset))], $0.element.hangs ? 1 : 0) })
    }

    /// What the media workers count. No label names a room or a person: their number has no bound.
    mutating func add(workers: [WorkerStatistics]) {
        func all(_ value: (WorkerStatistics) -> Double) -> [(labels: [(String, String)], value: Double)] {
            Self.perWorker(workers, value)
        }
        add("worker_peers", .gauge, "Peer connections on a media worker.", all { Double($0.peers) })
        add("worker_rooms", .gauge, "Rooms on a media worker.", all { Double($0.rooms) })
        add("worker_tracks", .gauge, "Published tracks on a media worker.", all { Double($0.tracks) })
        add("worker_subscriptions", .gauge, "Subscriptions on a media worker.", all { Double($0.subscriptions) })
        add(
            "worker_busy_seconds_total", .counter, "Time that a media worker's event loop was busy.",
            all { $0.busyTime.seconds })
        add("worker_turns_total", .counter, "Iterations of a media worker's event loop.", all { Double($0.turns) })
        add(
            "packets_received_total", .counter, "UDP datagrams received on the media ports.",
            all { Double($0.packetsReceived) })
        add(
            "bytes_received_total", .counter, "Bytes received in UDP datagrams on the media ports.",
            all { Double($0.bytesReceived) })
        add("packets_sent_total", .counter, "UDP datagrams sent from the media ports.", all { Double($0.packetsSent) })
        add(
            "bytes_sent_total", .counter, "Bytes sent in UDP datagrams from the media ports.",
            all { Double($0.bytesSent) })
        add(
            "packets_forwarded_total", .counter, "RTP packets forwarded to subscribers.",
            all { Double($0.packetsForwarded) })
        add(
            "nacks_received_total", .counter, "RTP packets that subscribers requested again by NACK.",
            all { Double($0.nacksReceived) })
        add(
            "packets_padded_total", .counter, "RTP packets padded to a common length (media.level_sizes).",
            all { Double($0.packetsPadded) })
        add(
            "nacks_sent_total", .counter, "RTP packets that the server requested again from publishers by NACK.",
            all { Double($0.nacksSent) })
        add(
            "retransmissions_sent_total", .counter, "RTP packets retransmitted to subscribers.",
            all { Double($0.retransmissionsSent) })
        add(
            "keyframe_requests_received_total", .counter, "Keyframe requests received from subscribers (PLI, FIR).",
            all { Double($0.keyframeRequestsReceived) })
        add(
            "keyframe_requests_sent_total", .counter, "Keyframe requests sent to publishers.",
            all { Double($0.keyframeRequestsSent) })
        add(
            "commands_ignored_total", .counter, "Commands for peers, tracks or subscriptions that no longer exist.",
            all { Double($0.commandsIgnored) })
        add(socketsOf: workers)
        add(sumsOf: workers)
        add(handshakesOf: workers)
        add(messagesOf: workers)
    }

    /// A value of each worker. A hung worker's earlier counts stay in the sums, which would otherwise seem to restart, but are not reported for the worker.
    private static func perWorker(
        _ workers: [WorkerStatistics], _ value: (WorkerStatistics) -> Double
    ) -> [(labels: [(String, String)], value: Double)] {
        workers.enumerated().filter { !$0.element.hangs }.map {
            ([("worker", String($0.offset))], value($0.element))
        }
    }

    /// What the kernel does with the datagrams of each worker.
    private mutating func add(socketsOf workers: [WorkerStatistics]) {
        func all(_ value: (WorkerStatistics) -> Double) -> [(labels: [(String, String)], value: Double)] {
            Self.perWorker(workers, value)
        }
        add("socket_calls_total", .counter, "System calls on media sockets.", all { Double($0.socketCalls) })
        add(
            "packets_segmented_total", .counter, "UDP datagrams sent with segmentation offload (UDP_SEGMENT).",
            all { Double($0.packetsSegmented) })
        add(
            "segmentation_refused_total", .counter,
            "Runs of UDP datagrams sent one by one because the kernel refused segmentation offload.",
            all { Double($0.segmentationRefused) })
        add(
            "receive_buffer_drops_total", .counter, "UDP datagrams dropped by the kernel: the receive buffer was full.",
            all { Double($0.receiveBufferDrops) })
    }

    /// Sums over all media workers, including those that hang: none of them names a worker.
    private mutating func add(sumsOf workers: [WorkerStatistics]) {
        add(
            "microphone_switches_total", .counter,
            "Microphones that took the place of another among the loudest of their room (policy maxMicrophones).",
            [([], Double(workers.reduce(0) { $0 + $1.microphoneSwitches }))])
        func addTimes(_ name: String, _ help: String, _ times: (WorkerStatistics) -> TransitHistogram) {
            addHistogram(
                name, help, bounds: TransitHistogram.boundsMicroseconds.map { Double($0) / 1e6 },
                counts: (0...TransitHistogram.boundsMicroseconds.count).map { bucket in
                    workers.reduce(0) { $0 &+ times($1).counts[bucket] }
                }, sum: workers.reduce(0) { $0 + times($1).total.seconds })
        }
        addTimes(
            "transit_seconds", "Time from receiving a packet from the kernel to sending it to a subscriber.", \.transit)
        addTimes(
            "worker_turn_seconds",
            "Time of one iteration of a media worker's event loop; the next packet may wait that long.", \.turnTimes)
        add(
            "probes_total", .counter, "Bandwidth probes sent to subscribers, by outcome.",
            ProbeOutcome.allCases.map { outcome in
                ([("outcome", "\(outcome)")], Double(workers.reduce(0) { $0 &+ $1.probes[outcome] }))
            })
        add(
            "packets_dropped_total", .counter, "Packets dropped, by reason.",
            DropReason.allCases.map { reason in
                ([("reason", "\(reason)")], Double(workers.reduce(0) { $0 &+ $1.drops[reason] }))
            })
    }

    /// Why connections were closed with `dtlsFailed`.
    private mutating func add(handshakesOf workers: [WorkerStatistics]) {
        add(
            "dtls_failures_total", .counter, "DTLS handshakes that failed, by cause.",
            HandshakeFailure.allCases.map { failure in
                ([("cause", "\(failure)")], Double(workers.reduce(0) { $0 &+ ($1.handshakeFailures[failure] ?? 0) }))
            })
    }

    /// TCP connections for media, of all workers and the shared port together.
    mutating func add(tcpOf parts: [TCPStatistics]) {
        var all = TCPStatistics()
        for part in parts { all.add(part) }
        add("tcp_connections", .gauge, "Open TCP connections on the media ports.", all.open)
        add(
            "tcp_connections_accepted_total", .counter, "TCP connections accepted on the media ports.", all.accepted)
        add(
            "tcp_connections_closed_total", .counter, "TCP connections on the media ports closed, by reason.",
            TCPConnectionEnd.allCases.map { ([("reason", "\($0)")], Double(all[$0])) })
        add("tcp_backlog_bytes", .gauge, "Bytes waiting for slow readers of TCP connections.", all.backlogBytes)
        add(
            "tcp_video_holds_total", .counter,
            "Times that a subscriber got no video over TCP until it had caught up, and then a keyframe.", all.holds)
    }

    /// Messages on data channels, of all workers together.
    mutating func add(messagesOf workers: [WorkerStatistics]) {
        func sum(_ value: (DataCounters) -> UInt64) -> UInt64 { workers.reduce(0) { $0 &+ value($1.data) } }
        add("messages_received_total", .counter, "Messages received on data channels.", sum(\.received))
        add("messages_sent_total", .counter, "Messages sent on data channels, per receiver.", sum(\.sent))
        add(
            "messages_dropped_total", .counter,
            "Lossy messages dropped because their receiver did not take them in time.", sum(\.lossyDropped))
        add(
            "messages_undeliverable_total", .counter,
            "Messages for a receiver without the data channel, or that accepts no message of that length.",
            sum(\.undeliverable))
        add(
            "messages_ignored_total", .counter,
            "Messages received on a stream without an open data channel, or with an unknown payload protocol identifier.",
            sum(\.ignored))
        add(
            "data_channels_closed_slow_total", .counter,
            "Reliable data channels closed because their receiver was too slow.", sum(\.channelsClosedAsSlow))
    }

    /// What the rooms count.
    mutating func add(rooms: RoomServiceStatistics) {
        add("rooms", .gauge, "Rooms.", rooms.rooms)
        add("participants", .gauge, "Participants.", rooms.participants)
        add("publishers", .gauge, "Participants that publish a track.", rooms.publishers)
        add("tracks", .gauge, "Published tracks.", rooms.tracks)
        add("subscriptions", .gauge, "Subscriptions.", rooms.subscriptions)
        add("connections", .gauge, "Peer connections.", rooms.connections)
        add(
            "connections_reserved", .gauge, "Peer connections reserved for participants, open or not.",
            rooms.reservedConnections)
        add(
            "connections_limit", .gauge, "Maximum peer connections (rooms.max_connections or memory).",
            rooms.maxConnections)
        add(
            "sessions_detached", .gauge, "Sessions without a signalling connection that can be resumed.",
            rooms.detachedSessions)
        add(
            "http_sessions", .gauge, "Sessions of WHIP and WHEP.",
            [
                ([("protocol", "whip")], Double(rooms.whipSessions)),
                ([("protocol", "whep")], Double(rooms.whepSessions)),
            ])
        add(
            "draining", .gauge,
            "1 while the server is draining: it creates no rooms, and serves joins to those it has.",
            rooms.isDraining ? 1 : 0)
        add("joins_total", .counter, "Participants joined.", rooms.joins)
        add("rooms_created_total", .counter, "Rooms created.", rooms.roomsCreated)
        add("resumes_total", .counter, "Sessions resumed on a new WebSocket.", rooms.resumes)
        add("events_delivered_total", .counter, "Signalling events queued for sessions.", rooms.eventsDelivered)
        add("offers_answered_total", .counter, "Offers from clients answered.", rooms.offersAnswered)
        add("offers_made_total", .counter, "Offers sent to clients.", rooms.offersMade)
        addHistogram(
            "connect_seconds", "Time from a participant's join to its first peer connection.",
            bounds: ConnectTimes.boundsMilliseconds.map { Double($0) / 1_000 }, counts: rooms.connectTimes.counts,
            sum: Double(rooms.connectTimes.totalMilliseconds) / 1_000)
        addHistogram(
            "join_step_seconds", "Time from a participant's join until it reached a step.",
            bounds: ConnectTimes.boundsMilliseconds.map { Double($0) / 1_000 },
            JoinStep.allCases.map { step in
                let times = rooms.joinSteps[step] ?? ConnectTimes()
                return (("step", step.rawValue), times.counts, Double(times.totalMilliseconds) / 1_000)
            })
        addHistogram(
            "token_verification_seconds", "Time to verify the access token of a participant that joined.",
            bounds: rooms.tokenVerification.bounds, counts: rooms.tokenVerification.counts,
            sum: rooms.tokenVerification.sum)
        add(network: rooms.network, freezes: rooms.freezes)
        addByReason("refusals_total", "Requests refused, by code.", "code", rooms.refusals)
        addByReason(
            "departures_total", "Participants left, by reason.", "reason", rooms.departures,
            known: LeaveReason.allCases.map(\.rawValue))
        addByReason(
            "connections_closed_total", "Peer connections closed, by reason.", "reason", rooms.connectionsEnded,
            known: PeerEndReason.allCases.map(\.rawValue))
    }

    /// How participants' networks perform, and what people see of it.
    private mutating func add(network: NetworkHistograms, freezes: Freezes) {
        func add(_ name: String, _ help: String, _ histogram: Histogram) {
            addHistogram(name, help, bounds: histogram.bounds, counts: histogram.counts, sum: histogram.sum)
        }
        add(
            "subscriber_loss_ratio", "Share of packets lost on the way to a subscriber, observed every 5 s.",
            network.loss)
        add(
            "subscriber_estimate_bytes_per_second",
            "Bandwidth estimate of the path to a subscriber, observed every 5 s where it was measured.",
            network.estimate)
        add("round_trip_seconds", "Round trip time of a participant, observed every 5 s.", network.roundTrip)
        add(
            "participant_quality", "Network quality of a participant, 0 (lost) to 5 (excellent), observed every 5 s.",
            network.quality)
        self.add(
            "video_freezes_total", .counter, "Freezes of videos that clients reported while playing.", freezes.count)
        self.add(
            "video_freeze_seconds_total", .counter, "Time for which videos stood still, as clients reported.",
            [([], freezes.duration.seconds)])
    }

    /// What the public listener counts.
    mutating func add(http: HTTPServerStatistics) {
        add("http_connections", .gauge, "Open HTTP connections, including WebSockets.", http.connections)
        add("http_connections_limit", .gauge, "Maximum open connections.", http.connectionLimit)
        add("http_connections_accepted_total", .counter, "Connections accepted.", http.connectionsAccepted)
        add(
            "http_requests_in_progress", .gauge, "Requests in progress, from the header to the end of the response.",
            http.requestsInWork)
        add("websockets", .gauge, "Open WebSockets.", http.webSockets)
        if let expiry = http.certificateExpiry {
            add(
                "http_certificate_expiry_timestamp_seconds", .gauge,
                "When the TLS certificate in use expires, in seconds since 1970.", expiry)
        }
        add("http_streams", .gauge, "Open event streams and downloads of recordings.", http.streams)
        add(
            "http_responses_total", .counter, "HTTP responses, by status class.",
            (1..<http.responses.count).map { ([("class", "\($0)xx")], Double(http.responses[$0])) })
        add("http_request_timeouts_total", .counter, "Requests that timed out.", http.requestTimeouts)
        add("http_overloads_total", .counter, "Requests and connections refused because of overload.", http.overloads)
        add(
            "http_malformed_requests_total", .counter, "Requests refused because they were malformed.",
            http.malformedRequests)
        add(
            "http_limits_reached_total", .counter, "How often a limit of the HTTP listener was reached, by limit.",
            HTTPLimit.allCases.map { ([("limit", $0.rawValue)], Double(http.limitsReached[$0] ?? 0)) })
        add(
            "websocket_messages_received_total", .counter, "WebSocket messages received from clients.",
            http.messagesReceived)
        add("websocket_messages_sent_total", .counter, "WebSocket messages sent to clients.", http.messagesSent)
        add(
            "websocket_slow_readers_total", .counter, "WebSockets closed because the client read too slowly.",
            http.slowReaders)
        add(
            "websocket_limits_hit_total", .counter,
            "WebSockets closed because of too large or too many messages or frames.",
            http.webSocketLimitsHit)
    }

    /// How long calls of the control API take.
    mutating func add(calls: CallStatistics.Counts) {
        addHistogram(
            "api_call_seconds", "Time until a call of the control API was answered, by operation.",
            bounds: calls.times.values.first?.bounds ?? [],
            calls.times.sorted { $0.key < $1.key }.map { (("operation", $0.key), $0.value.counts, $0.value.sum) })
        addByReason(
            "api_refusals_total", "Calls of the control API that were refused, by code.", "code", calls.refusals,
            known: ["rate_limited"])
    }

    /// How the export of traces performs.
    mutating func add(traces: TraceExporter.Statistics) {
        add("traces_exported_total", .counter, "Traces of joins that the collector accepted.", traces.exported)
        add(
            "traces_dropped_total", .counter, "Traces of joins that were not exported, by reason.",
            [
                ([("reason", "queue_full")], Double(traces.droppedFull)),
                ([("reason", "collector")], Double(traces.droppedRefused)),
            ])
    }

    /// The state of webhooks. Their names are the operator's, and there are few.
    mutating func add(webhooks: [WebhookStatus]) {
        func each(_ value: (WebhookStatus) -> Double) -> [(labels: [(String, String)], value: Double)] {
            webhooks.map { ([("webhook", $0.webhook.name)], value($0)) }
        }
        add(
            "webhook_failing", .gauge, "1 while a webhook's receiver does not accept events.",
            each { $0.state == .active ? 0 : 1 })
        add("webhook_events_queued", .gauge, "Events that wait for a webhook's receiver.", each { Double($0.queued) })
        add(
            "webhook_events_delivered_total", .counter, "Events that a webhook's receiver accepted.",
            each { Double($0.delivered) })
        add(
            "webhook_events_lost_total", .counter,
            "Events that a webhook's receiver refused for good or that its queue had no room for.",
            each { Double($0.lost) })
    }

    /// A series begins with 0 for each reason that is `known`: a rate over the first occurrence needs the value before it.
    private mutating func addByReason(
        _ name: String, _ help: String, _ label: String, _ counts: [String: UInt64], known: [String] = []
    ) {
        let counts = counts.merging(known.map { ($0, 0) }) { count, _ in count }
        add(name, .counter, help, counts.sorted { $0.key < $1.key }.map { ([(label, $0.key)], Double($0.value)) })
    }
}
