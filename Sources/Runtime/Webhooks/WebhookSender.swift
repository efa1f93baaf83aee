public import AccessTokens
import HTTPClient
public import Logging
import NetworkIO
import Primitives
public import RoomService
import Rooms
public import Storage

/// Posts the events of rooms to the configured receivers.
///
/// Events come from the event log, go into the database at once, and leave it when a receiver has accepted them: if a receiver is unreachable, or the server
/// was restarted, they arrive later. Media never waits for this.
public actor WebhookSender {
    /// The interface to the outside, replaceable in tests.
    struct World: Sendable {
        /// The second argument: whether receivers may be on this machine and in its networks.
        var post: @Sendable (WebhookRequest, Bool) async -> WebhookOutcome
        var sleep: @Sendable (TimeSpan) async -> Void
        /// Milliseconds since 1970, for signatures.
        var wallClock: @Sendable () -> Int64
        /// The monotonic clock: how long a receiver has failed must not depend on the wall clock, which may be set.
        var now: @Sendable () -> MonotonicTime
        /// 0 to 1.
        var jitter: @Sendable () -> Double
    }

    private struct Lane {
        let wake: AsyncStream<Void>.Continuation
        let task: Task<Void, Never>
    }

    /// How long a lane waits after the database has failed.
    private static let databasePause = TimeSpan.seconds(1)

    private struct Entry {
        var webhook: Webhook
        /// The number of the change that made it; nil: it is in the database.
        var change: Int?
        var lanes: [Lane] = []
        var state = WebhookStatus.State.active
        var delivered: UInt64 = 0
        var lost: UInt64 = 0
        /// When its receiver last accepted an event, on any lane.
        var lastAccepted: MonotonicTime?
        var lastError: String?
    }

    private let rooms: RoomHost
    private let queue: WebhookQueue
    private var keys: [APIKey]
    private var allowsPrivate: Bool
    private let encode: WebhookEncoder
    private let world: World
    private let logger: Logger
    private var entries: [String: Entry] = [:]
    /// The database's version of webhooks that are being changed: it is restored if the database refuses the change.
    private var former: [String: Entry] = [:]
    private var lastChange = 0
    private var isStopping = false
    private var progress = WebhookProgress()

    /// The webhooks in `database`. `encode` encodes an event; `keys` sign for webhooks that name one. `allowsPrivate`: receivers may be on this machine and in
    /// its networks.
    public init(
        of rooms: RoomHost, database: Database, keys: [APIKey], allowsPrivate: Bool,
        encode: @escaping WebhookEncoder,
        wallClock: @escaping @Sendable () -> Int64, logger: Logger
    ) {
        self.init(
            of: rooms, database: database, keys: keys, allowsPrivate: allowsPrivate, encode: encode,
            world: World(
                post: { await $0.post(isPublicOnly: !$1) },
                sleep: { try? await Task.sleep(for: .milliseconds($0.milliseconds)) },
                wallClock: wallClock, now: MonotonicClock.now,
                jitter: {
                    var random = SystemRandomNumberGenerator()
                    return Double.random(in: 0...1, using: &random)
                }), logger: logger)
    }

    init(
        of rooms: RoomHost, database: Database, keys: [APIKey], allowsPrivate: Bool,
        encode: @escaping WebhookEncoder, world: World, logger: Logger
    ) {
        self.rooms = rooms
        self.keys = keys
        self.allowsPrivate = allowsPrivate
        self.encode = encode
        self.world = world
        self.logger = logger
        queue = WebhookQueue(database)
    }

    /// Sets the keys, and whether receivers may be on this machine and in its networks, from the next event on.
    public func set(keys: [APIKey], allowsPrivate: Bool) {
        self.keys = keys
        self.allowsPrivate = allowsPrivate
    }

    /// The database schema that it needs.
    public static var schema: [SchemaStep] { WebhookQueue.schema }

    /// Loads the webhooks of the server's earlier run. Call once, before `run()`, for which `settle()` waits from now on.
    public func load() async throws(DatabaseError) {
        progress.begin()
        for (webhook, parked) in try await queue.webhooks() {
            entries[webhook.name] = Entry(
                webhook: webhook, state: parked == nil ? .active : .parked, lastError: parked)
        }
    }

    /// Serves until the events end after `stop()`, or the task is cancelled. Call once.
    public func run() async {
        // Lanes of webhooks that were set since `load()` are open, or are opened once the database has them: a second task for a lane would post its events
        // twice.
        for (name, entry) in entries where entry.lanes.isEmpty && entry.change == nil { open(name) }
        var cursor = EventCursor.beginning
        var isOver = false
        while !isOver, !Task.isCancelled {
            // Only a feed that was opened after `stop()` is known to end with the log's last event; such a feed is always read.
            isOver = isStopping
            let feed = await rooms.follow(room: nil, after: cursor)
            if feed.missesEvents, cursor != .beginning {
                logger.error("events came faster than the database took them; webhooks miss some")
            }
            for await event in feed.events {
                cursor = event.cursor
                await add(event)
                progress.reach(event.cursor.position)
            }
        }
        progress.end()
        for entry in entries.values { entry.lanes.forEach { $0.task.cancel() } }
    }

    /// No more events follow: `run()` ends after the last one, and events that were not accepted wait for the server's next start.
    public func stop() { isStopping = true }

    /// Returns when all events so far that a webhook selects are in the database, so that the end of the process does not lose them. Does not
    /// wait if the database is far behind, and waits at most a second: a disk that hangs must not keep an operator's call from its answer.
    public func settle() async {
        guard !entries.isEmpty else { return }
        let last = await rooms.lastEvent
        guard progress.isWorthWaiting(for: last) else { return }
        let ticket = progress.ticket()
        let limit = Task {
            try? await Task.sleep(for: Self.longestSettling)
            if !Task.isCancelled { progress.giveUp(ticket) }
        }
        await withCheckedContinuation { progress.wait(for: last, ticket, $0) }
        limit.cancel()
    }

    private static let longestSettling = Duration.seconds(1)

    private func add(_ event: RoomLogEntry) async {
        let formats = Set(entries.values.map(\.webhook.format))
        for (format, messages) in encode(event, formats) {
            for message in messages { await add(message, in: format, of: event.room) }
        }
    }

    private func add(_ message: WebhookMessage, in format: Webhook.Format, of room: String) async {
        let names = entries.values.map(\.webhook)
            .filter { $0.format == format && $0.wants(type: message.type, room: room) }.map(\.name)
        guard !names.isEmpty else { return }
        do throws(DatabaseError) {
            let lost = try await queue.add(message, in: format, room: room, to: names)
            for (name, count) in lost { entries[name]?.lost += UInt64(count) }
        } catch {
            for name in names { entries[name]?.lost += 1 }
            logger.error("an event for webhooks is lost: the database failed", ["error": .text(error.description)])
        }
        let lane = WebhookQueue.lane(of: room)
        for name in names where entries[name]?.lanes.indices.contains(lane) == true {
            entries[name]?.lanes[lane].wake.yield()
        }
    }
}

// MARK: Administration

extension WebhookSender {
    /// Every webhook by name.
    public func list() async throws(WebhookError) -> [WebhookStatus] {
        var all: [WebhookStatus] = []
        for name in entries.keys.sorted() {
            if let status = try await status(of: name) { all.append(status) }
        }
        return all
    }

    /// One webhook; nil if there is none with that name.
    public func status(of name: String) async throws(WebhookError) -> WebhookStatus? {
        let queued = try await storing { () throws(DatabaseError) in try await queue.count(of: name) }
        guard let entry = entries[name] else { return nil }
        return WebhookStatus(
            webhook: entry.webhook, state: entry.state, queued: queued, delivered: entry.delivered, lost: entry.lost,
            lastError: entry.lastError)
    }

    /// Creates a webhook or replaces it; waiting events of one with that name go to the new receiver. Returns whether it is new.
    @discardableResult
    public func put(_ webhook: Webhook) async throws(WebhookError) -> Bool {
        let isNew = entries[webhook.name] == nil
        try await store(webhook, change: place(webhook))
        return isNew
    }

    /// Replaces a webhook by the result of `change`, in one step: no other change comes in between. If `change` refuses, the webhook stays as it was. nil:
    /// there is none with that name.
    public func change<Refusal: Error>(
        _ name: String, _ change: @Sendable (Webhook) -> Result<Webhook, Refusal>
    ) async throws(WebhookError) -> Result<Webhook, Refusal>? {
        guard let entry = entries[name] else { return nil }
        let result = change(entry.webhook)
        if case .success(let webhook) = result {
            try await store(webhook, change: place(webhook))
        }
        return result
    }

    /// In force at once, before the database is awaited, so that two calls at a time cannot both take the last free place. Returns the number of this change.
    private func place(_ webhook: Webhook) throws(WebhookError) -> Int {
        try webhook.check(keys: keys, allowsPrivate: allowsPrivate)
        let name = webhook.name
        guard entries[name] != nil || entries.count < Webhook.Limits.webhooks else { throw .tooMany }
        close(name)
        let before = entries[name]
        if let before, before.change == nil { former[name] = before }
        lastChange += 1
        entries[name] = Entry(
            webhook: webhook, change: lastChange, delivered: before?.delivered ?? 0, lost: before?.lost ?? 0)
        return lastChange
    }

    /// Stores a change that is in force. If the database refuses it, the former webhook is restored, unless there was a later change.
    private func store(_ webhook: Webhook, change: Int) async throws(WebhookError) {
        let name = webhook.name
        do throws(WebhookError) {
            try await storing { () throws(DatabaseError) in try await queue.put(webhook) }
        } catch {
            if entries[name]?.change == change {
                let lost = entries[name]?.lost ?? 0
                entries[name] = former.removeValue(forKey: name)
                entries[name]?.lost = lost
                open(name)
            }
            throw error
        }
        guard let entry = entries[name] else { return }
        guard entry.change == change else {
            if entry.change != nil { former[name] = Entry(webhook: webhook, delivered: entry.delivered) }
            return
        }
        former[name] = nil
        entries[name]?.change = nil
        close(name)
        open(name)
    }

    /// Removes a webhook and its waiting events; returns whether there was one. If the database refuses, the webhook is restored, without later events.
    public func delete(_ name: String) async throws(WebhookError) -> Bool {
        close(name)
        let stored = former.removeValue(forKey: name)
        guard let entry = entries.removeValue(forKey: name) else { return false }
        do throws(WebhookError) {
            try await storing { () throws(DatabaseError) in try await queue.delete(name) }
        } catch {
            if entries[name] == nil, let kept = entry.change == nil ? entry : stored {
                entries[name] = kept
                open(name)
            }
            throw error
        }
        return true
    }

    private func storing<Value: Sendable>(
        _ work: () async throws(DatabaseError) -> Value
    ) async throws(WebhookError) -> Value {
        do throws(DatabaseError) {
            return try await work()
        } catch {
            throw .storage(error.description)
        }
    }
}

// MARK: Sending

extension WebhookSender {
    private func open(_ name: String) {
        entries[name]?.lanes = (0..<WebhookQueue.lanes).map { lane in
            let (signals, wake) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
            wake.yield()
            return Lane(
                wake: wake,
                task: Task {
                    for await _ in signals { await serve(name, lane) }
                })
        }
    }

    private func close(_ name: String) {
        entries[name]?.lanes.forEach { $0.task.cancel() }
        entries[name]?.lanes = []
    }

    /// Sends what waits in a lane until it is empty.
    private func serve(_ name: String, _ lane: Int) async {
        var backoff = WebhookBackoff()
        while !Task.isCancelled, let webhook = entries[name]?.webhook, entries[name]?.state != .parked {
            let found = await patiently(name) { () async throws(DatabaseError) in
                try await queue.oldest(of: name, lane: lane)
            }
            guard let found, let event = found else { return }
            let outcome = await send(event, to: webhook)
            // Replaced or removed meanwhile: an accepted event is sent again rather than lost.
            guard !Task.isCancelled, entries[name]?.webhook == webhook else { return }
            let step = backoff.step(
                after: outcome, at: world.now(), accepted: entries[name]?.lastAccepted, jitter: world.jitter())
            if step == .park {
                // Before anybody can see that it is parked: the server may end right then, and its next run must know.
                await patiently(name) { () async throws(DatabaseError) in
                    try await queue.park(name, outcome.error ?? "")
                }
                guard !Task.isCancelled else { return }
            }
            note(outcome, step, name)
            switch step {
            case .next, .giveUp:
                await patiently(name) { () async throws(DatabaseError) in try await queue.remove(event.id) }
            case .again(let wait): await world.sleep(wait)
            case .park: return
            }
        }
    }

    /// Retries until the database carries out `work`, or the lane is closed (nil): if the lane continued, it would post accepted events again, and if it
    /// returned, it would wait for another event.
    @discardableResult
    private func patiently<Value: Sendable>(
        _ name: String, _ work: () async throws(DatabaseError) -> Value
    ) async -> Value? {
        var isLogged = false
        while !Task.isCancelled {
            do throws(DatabaseError) {
                return try await work()
            } catch {
                if !isLogged {
                    logger.error(
                        "the database fails; a webhook's events wait",
                        ["webhook": .text(name), "error": .text(error.description)])
                }
                isLogged = true
                await world.sleep(Self.databasePause)
            }
        }
        return nil
    }

    private func send(_ event: QueuedEvent, to webhook: Webhook) async -> WebhookOutcome {
        guard let request = WebhookRequest(event, to: webhook, keys: keys, at: world.wallClock() / 1_000) else {
            return .failed("the API key that signs is no longer configured")
        }
        return await world.post(request, allowsPrivate)
    }

    private func note(_ outcome: WebhookOutcome, _ step: WebhookBackoff.Step, _ name: String) {
        let error = outcome.error
        if step == .next {
            entries[name]?.delivered += 1
            entries[name]?.lastAccepted = world.now()
        }
        if step == .giveUp { entries[name]?.lost += 1 }
        let before = entries[name]?.state
        // Another lane parked it while this one waited for its response.
        guard before != .parked else { return }
        let state: WebhookStatus.State =
            switch step {
            case .next: .active
            case .park: .parked
            case .again, .giveUp: .failing
            }
        entries[name]?.state = state
        entries[name]?.lastError = error
        let fields: LogFields = ["webhook": .text(name), "error": .text(error ?? "none")]
        if step == .giveUp {
            logger.warning("an event of a webhook is given up: its receiver does not accept it", fields)
        }
        guard state != before else { return }
        switch state {
        case .active: logger.info("a webhook's receiver accepts events again", fields)
        case .failing: logger.warning("a webhook's receiver does not accept events; they wait for it", fields)
        case .parked: logger.error("a webhook is parked: its receiver accepted nothing for a day; set it again", fields)
        }
    }
}
