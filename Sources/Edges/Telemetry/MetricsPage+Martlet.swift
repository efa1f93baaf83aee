import HTTPServing
import MediaControl
import Primitives
import RoomService

extension MetricsPage {
    /// Which media workers hang.
    mutating func add(hangsOf workers: [WorkerStatistics]) {
        add(
            "worker_hangs", .gauge, "1 while a media worker's loop stands still.",
            workers.enumerated().map { ([("worker", String($0.offset))], $0.element.hangs ? 1 : 0) })
    }

    /// What the media workers count. No label names a room or a person: their number has no bound.
    mutating func add(workers: [WorkerStatistics]) {
        // What a worker that hangs counted before stays in sums, which would seem to begin anew, and is told of no worker.
        func all(_ value: (WorkerStatistics) -> Double) -> [(labels: [(String, String)], value: Double)] {
            workers.enumerated().filter { !$0.element.hangs }.map {
                ([("worker", String($0.offset))], value($0.element))
            }
        }
        add("worker_peers", .gauge, "Peers of a media worker.", all { Double($0.peers) })
        add("worker_rooms", .gauge, "Rooms of a media worker.", all { Double($0.rooms) })
        add("worker_tracks", .gauge, "Published tracks of a media worker.", all { Double($0.tracks) })
        add("worker_subscriptions", .gauge, "Subscriptions of a media worker.", all { Double($0.subscriptions) })
        add(
            "worker_busy_seconds_total", .counter, "Time a media worker spent in its turns.",
            all { $0.busyTime.seconds })
        add("worker_turns_total", .counter, "Turns of a media worker's loop.", all { Double($0.turns) })
        add("packets_received_total", .counter, "Datagrams received.", all { Double($0.packetsReceived) })
        add("bytes_received_total", .counter, "Bytes received in datagrams.", all { Double($0.bytesReceived) })
        add("packets_sent_total", .counter, "Datagrams sent.", all { Double($0.packetsSent) })
        add("bytes_sent_total", .counter, "Bytes sent in datagrams.", all { Double($0.bytesSent) })
        add(
            "packets_forwarded_total", .counter, "RTP packets sent to subscribers.", all { Double($0.packetsForwarded) }
        )
        add(
            "nacks_received_total", .counter, "Packets that subscribers asked for again.",
            all { Double($0.nacksReceived) })
        add(
            "packets_padded_total", .counter, "RTP packets padded to the length of their neighbours.",
            all { Double($0.packetsPadded) })
        add("nacks_sent_total", .counter, "Packets that publishers were asked for again.", all { Double($0.nacksSent) })
        add("retransmissions_sent_total", .counter, "Packets sent again.", all { Double($0.retransmissionsSent) })
        add(
            "keyframe_requests_received_total", .counter, "Keyframe requests of subscribers.",
            all { Double($0.keyframeRequestsReceived) })
        add(
            "keyframe_requests_sent_total", .counter, "Keyframe requests to publishers.",
            all { Double($0.keyframeRequestsSent) })
        add("socket_calls_total", .counter, "System calls on media sockets.", all { Double($0.socketCalls) })
        add(
            "packets_segmented_total", .counter, "Datagrams that left in segmented calls.",
            all { Double($0.packetsSegmented) })
        add(
            "receive_buffer_drops_total", .counter, "Datagrams that the kernel dropped.",
            all { Double($0.receiveBufferDrops) })
        add(
            "commands_ignored_total", .counter, "Commands about what was already gone.",
            all { Double($0.commandsIgnored) })
        add(sumsOf: workers)
    }

    /// What the media workers count together, those that hang included: none of it names a worker.
    private mutating func add(sumsOf workers: [WorkerStatistics]) {
        addHistogram(
            "transit_seconds", "Time from fetching a packet to sending it on.",
            bounds: TransitHistogram.boundsMicroseconds.map { Double($0) / 1e6 },
            counts: (0...TransitHistogram.boundsMicroseconds.count).map { bucket in
                workers.reduce(0) { $0 &+ $1.transit.counts[bucket] }
            }, sum: workers.reduce(0) { $0 + $1.transit.total.seconds })
        add(
            "probes_total", .counter, "Bandwidth probes sent to subscribers, by outcome.",
            ProbeOutcome.allCases.map { outcome in
                ([("outcome", "\(outcome)")], Double(workers.reduce(0) { $0 &+ $1.probes[outcome] }))
            })
        add(
            "packets_dropped_total", .counter, "Packets not used, by reason.",
            DropReason.allCases.map { reason in
                ([("reason", "\(reason)")], Double(workers.reduce(0) { $0 &+ $1.drops[reason] }))
            })
    }

    /// What the rooms count.
    mutating func add(rooms: RoomServiceStatistics) {
        add("rooms", .gauge, "Rooms.", rooms.rooms)
        add("participants", .gauge, "Participants.", rooms.participants)
        add("publishers", .gauge, "Participants with a track.", rooms.publishers)
        add("tracks", .gauge, "Published tracks.", rooms.tracks)
        add("subscriptions", .gauge, "Subscriptions.", rooms.subscriptions)
        add("connections", .gauge, "Peer connections.", rooms.connections)
        add(
            "connections_reserved", .gauge, "Peer connections kept for participants, open or not.",
            rooms.reservedConnections)
        add("connections_limit", .gauge, "Peer connections that there is memory for.", rooms.maxConnections)
        add("sessions_detached", .gauge, "Sessions that wait to be resumed.", rooms.detachedSessions)
        add("draining", .gauge, "1 while no new rooms are taken.", rooms.isDraining ? 1 : 0)
        add("joins_total", .counter, "Joins.", rooms.joins)
        add("rooms_created_total", .counter, "Rooms made.", rooms.roomsCreated)
        add("resumes_total", .counter, "Sessions resumed on a new socket.", rooms.resumes)
        add("events_delivered_total", .counter, "Events put into sessions' queues.", rooms.eventsDelivered)
        add("offers_answered_total", .counter, "Offers of clients answered.", rooms.offersAnswered)
        add("offers_made_total", .counter, "Offers made to clients.", rooms.offersMade)
        addByReason("refusals_total", "Requests refused, by code.", "code", rooms.refusals)
        addByReason("departures_total", "Participants gone, by reason.", "reason", rooms.departures)
        addByReason("connections_closed_total", "Peer connections closed, by reason.", "reason", rooms.connectionsEnded)
    }

    /// What the public listener counts.
    mutating func add(http: HTTPServerStatistics) {
        add("http_connections", .gauge, "Open connections, WebSockets included.", http.connections)
        add("http_connections_limit", .gauge, "Connections that may be open.", http.connectionLimit)
        add("http_connections_accepted_total", .counter, "Connections accepted.", http.connectionsAccepted)
        add("http_requests_in_progress", .gauge, "Requests between head and end.", http.requestsInWork)
        add("websockets", .gauge, "Open WebSockets.", http.webSockets)
        add(
            "http_responses_total", .counter, "Responses, by the first digit of their status.",
            (1..<http.responses.count).map { ([("class", "\($0)xx")], Double(http.responses[$0])) })
        add("http_request_timeouts_total", .counter, "Requests given up.", http.requestTimeouts)
        add("http_overloads_total", .counter, "Requests and connections turned away.", http.overloads)
        add(
            "http_malformed_requests_total", .counter, "Requests refused because they were not well-formed.",
            http.malformedRequests)
        add(
            "http_limits_reached_total", .counter, "Bounds of the HTTP listener that were reached, by bound.",
            HTTPLimit.allCases.map { ([("limit", $0.rawValue)], Double(http.limitsReached[$0] ?? 0)) })
        add("websocket_messages_received_total", .counter, "Messages of clients.", http.messagesReceived)
        add("websocket_messages_sent_total", .counter, "Messages to clients.", http.messagesSent)
        add("websocket_slow_readers_total", .counter, "WebSockets closed because nobody read.", http.slowReaders)
        add(
            "websocket_limits_hit_total", .counter, "WebSockets closed for too large or too many messages or frames.",
            http.webSocketLimitsHit)
    }

    private mutating func addByReason(_ name: String, _ help: String, _ label: String, _ counts: [String: UInt64]) {
        add(name, .counter, help, counts.sorted { $0.key < $1.key }.map { ([(label, $0.key)], Double($0.value)) })
    }
}
