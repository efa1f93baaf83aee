import MediaControl
import Primitives
import Rooms

extension RoomService {
    /// How often deadlines are looked at: members learn of a changed room within 300 ms.
    static let tickInterval = Duration.milliseconds(100)
    /// How often all deadlines are looked at where nothing has changed: they are of seconds and longer.
    private static let quietInterval = TimeInterval.seconds(1)

    /// Serves until the task is cancelled: takes media events and watches deadlines. Call once.
    public func run() async {
        let media = media
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for await events in media.events { await self.receive(events) } }
            group.addTask {
                for await _ in self.alarms {
                    guard (try? await Task.sleep(for: Self.tickInterval)) != nil else { return }
                    await self.tick()
                }
            }
            group.addTask {
                while (try? await Task.sleep(for: .seconds(1))) != nil { await self.tick() }
            }
            group.addTask {
                for await _ in self.captureStarts {
                    while await self.continueCaptures() {
                        guard (try? await Task.sleep(for: Self.captureInterval)) != nil else { return }
                    }
                }
            }
            group.addTask {
                while (try? await Task.sleep(for: .seconds(5))) != nil { await self.measureQuality() }
            }
        }
    }

    /// Brings what workers tell to the rooms.
    func receive(_ events: [MediaEvent]) async {
        for event in events {
            guard let name = nameByID[moved.room(of: event)], let hosted = rooms[name] else { continue }
            if case .dataReceived(let peer, let label, let payload) = event {
                await receive(payload, label: label, from: peer, hosted)
            } else {
                await step(hosted) { $0.receive(event, turn: &$1) }
            }
        }
    }

    /// Lets deadlines happen.
    func tick() async {
        let now = media.now()
        moved.keep { number, room in nameByID[room].flatMap { rooms[$0] }?.room.owns(number) == true }
        for name in rooms.filter({ $0.value.room.nextDeadline <= now }).keys.sorted() {
            guard let hosted = rooms[name], hosted.room.nextDeadline <= now else { continue }
            await step(hosted) { $0.advance(turn: &$1) }
        }
        if rooms.values.contains(where: { $0.room.nextDeadline < now + Self.quietInterval }) { alarm.yield() }
    }

    /// Tells every member `server_shutdown`, ends every session, refuses new ones.
    public func shutDown() async {
        isEnding = true
        for name in rooms.keys.sorted() {
            guard let hosted = rooms[name] else { continue }
            await step(hosted) { $0.close(reason: .serverShutdown, turn: &$1) }
        }
        closeEvents()
    }
}
