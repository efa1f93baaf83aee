import Primitives

/// What a message costs the media thread for each receiver, without system calls: SCTP, DTLS and the engine, with acknowledgements.
enum DataBenchmarks {
    private static let receivers = 100

    static func run(_ runner: Runner) throws {
        guard runner.wants("data") else { return }
        let room = try DataRoom(peers: receivers + 1)
        let cases: [(name: String, length: Int, isReliable: Bool, count: Int)] = [
            ("data: 100 B lossy to 100, each", 100, false, 200), ("data: 1 kB reliable to 100, each", 1_000, true, 200),
            ("data: 16 kB reliable to 100, each", 16_384, true, 50),
        ]
        for (name, length, isReliable, count) in cases {
            room.send(20, length: length, isReliable: isReliable, spacing: .milliseconds(20))
            room.resetCost()
            room.send(count, length: length, isReliable: isReliable, spacing: .milliseconds(20))
            guard room.delivered == count * receivers else {
                preconditionFailure("\(room.delivered) messages of \(count * receivers) arrived")
            }
            let each = Double(room.cost) / Double(room.delivered)
            runner.note(
                Figure(
                    name: name, unit: .nanoseconds, value: each, normalized: each / runner.referenceNanoseconds))
        }
    }
}
