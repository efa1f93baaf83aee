import AccessTokens
import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Policy: what a dry run foretells")
struct DryRunTests {
    @Test("I2: a dry run lists exactly whom the edit would concern, and changes nothing")
    func tracksAndSubscriptions() throws {
        var (bench, ada, bob) = try PolicyTests.meeting()
        let policy = PolicyTests.policy {
            $0.audioOnly = true
            $0.maxParticipants = 1
            $0.maxPublishers = 1
        }
        let video = bench.trackSID(ada, .video)
        let impact = try bench.impact(of: policy)
        #expect(impact.participants.map(\.identity) == ["ada", "bob"])
        #expect(impact.participants[0].endedTracks == [video] && impact.participants[0].endedSubscriptions.isEmpty)
        #expect(impact.participants[1].endedSubscriptions == [video] && !impact.participants[1].leaves)
        #expect(impact.participantsBeyondLimit == 1 && impact.publishersBeyondLimit == 1)
        #expect(bench.room.policy == RoomPolicy() && bench.room.sessions == [ada, bob])
        #expect(try bench.impact(of: policy, removesExcess: true).participants[1].leaves)
        #expect(try bench.impact(of: RoomPolicy()).participants.isEmpty)
        try bench.setPolicy(policy)
        #expect(bench.info(ada)?.tracks.map(\.sid).contains(video) == false, "as foretold")
    }

    @Test("I2: removesExcess removes who stayed beyond a limit that holds already, and a dry run of that lists them")
    func excessOfBefore() throws {
        var (bench, ada, bob) = try PolicyTests.meeting()
        let one = PolicyTests.policy { $0.maxParticipants = 1 }
        try bench.setPolicy(one)
        #expect(try bench.impact(of: one).participants.isEmpty)
        #expect(bench.room.sessions == [ada, bob])
        let impact = try bench.impact(of: one, removesExcess: true)
        #expect(impact.participants.filter(\.leaves).map(\.identity) == ["bob"] && impact.participantsBeyondLimit == 0)
        try bench.setPolicy(one, removesExcess: true)
        #expect(bench.room.sessions == [ada] && bench.ended == [bob: .policyChanged])
        #expect(bench.room.policyRevision == 2, "the rules are those of before")
    }

    @Test(
        "I2: a dry run lists whose stay the edit ends with the next step, and when those of the others end",
        arguments: [
            (PolicyTests.policy { $0.maxStay = .seconds(20) }, ["ada"], ["bob": 10_000]),
            (PolicyTests.policy { $0.maxStay = .seconds(21) }, [], ["ada": 1_000, "bob": 11_000]),
            (PolicyTests.policy { $0.maxDuration = .seconds(20) }, ["ada", "bob"], [:]),
            (
                PolicyTests.policy { ($0.maxDuration, $0.maxStay) = (.seconds(25), .seconds(60)) }, [],
                ["ada": 5_000, "bob": 5_000]
            ),
            (PolicyTests.policy { $0.endsStayWithToken = true }, ["ada"], ["bob": 20_000]),
        ] as [(RoomPolicy, [String], [String: Int64])])
    func durations(policy: RoomPolicy, leaving: [String], ends: [String: Int64]) throws {
        let second = RoomBench.wallClock / 1_000
        var bench = RoomBench()
        // ada has been here for 20 s and bob for 10 s; ada's token has just expired, bob's is good for another 20 s.
        let ada = try bench.join("ada") { $0.claims.expiresAt = second + 20 }
        bench.advance(by: .seconds(10))
        let bob = try bench.join("bob") { $0.claims.expiresAt = second + 30 }
        bench.touch([ada])
        bench.advance(by: .seconds(10))
        bench.touch([ada, bob])
        let impact = try bench.impact(of: policy)
        #expect(impact.participants.filter(\.leaves).map(\.identity) == leaving)
        let changed = impact.participants.filter(\.changesEnd).map { ($0.identity, $0.endsAt) }
        #expect(Dictionary(uniqueKeysWithValues: changed) == ends.mapValues { RoomBench.wallClock + $0 })
        #expect(bench.room.sessions == [ada, bob])
        try bench.setPolicy(policy)
        let lifted = try bench.impact(of: RoomPolicy()).participants
        #expect(lifted.map(\.changesEnd) == [true, true] && lifted.allSatisfy { !$0.leaves && $0.endsAt == nil })
        bench.advance(by: .zero)
        #expect(bench.ended.count == leaving.count && bench.room.sessions.count == 2 - leaving.count, "as foretold")
    }

    @Test(
        "I2: a dry run counts who would not be let in any more because it does not encrypt, and lists whom removesExcess removes"
    )
    func encryption() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada") { $0.encrypts = true }
        try bench.join("bob")
        try bench.join("carol") { $0.encrypts = true }
        let policy = PolicyTests.policy { ($0.requiresEncryption, $0.maxParticipants) = (true, 1) }
        let impact = try bench.impact(of: policy)
        #expect(impact.participantsBeyondLimit == 2 && impact.participants.isEmpty)
        let removing = try bench.impact(of: policy, removesExcess: true)
        #expect(removing.participantsBeyondLimit == 0)
        #expect(removing.participants.filter(\.leaves).map(\.identity) == ["bob", "carol"])
        try bench.setPolicy(policy, removesExcess: true)
        #expect(bench.room.sessions == [ada], "as foretold")
    }
}
