import AccessTokens
import ControlAPI
import EdgeTestSupport
import MediaControl
import RoomService
import Rooms
import SDP
import Storage
import Testing

@testable import RuleStore

@Suite("Rules that outlast the process")
struct RuleStoreTests {
    private let database: Database
    private let store: RuleDatabase

    init() throws {
        database = try Database(path: nil, schema: RuleDatabase.schema)
        store = RuleDatabase(database, encode: PolicyText.encode, decode: PolicyText.decode)
    }

    private static let preset: PolicyDocument = {
        var document = PolicyDocument()
        document.maxParticipants = 7
        document.subscribeRules = [SubscribeRule(includes: true, .kind(.audio))]
        document.h264Profiles = [.high]
        document.alwaysHeard = ["ada"]
        return document
    }()

    private static let closure = StandingRule.Closure(issuedAfter: 90, until: 200_000)

    private static let rules: [StandingRule] = [
        .preset(name: "class", preset), .preset(name: "hall", PolicyDocument()),
        .ban(identity: "eve", room: "R", .init(until: 200_000, reason: "spam")),
        .revocation(.token("t-1"), closure), .revocation(.identity("eve"), closure),
        .closure(room: "R", identity: nil, closure), .closure(room: "R", identity: "eve", closure),
    ]

    @Test("Every kind of rule comes back as it was written, and one that has ended does not")
    func roundTrip() async throws {
        for rule in Self.rules { try await store.keep(rule, now: 0) }
        #expect(Set(try await store.load(now: 100_000)) == Set(Self.rules))
        try await store.keep(.preset(name: "hall", nil), now: 0)
        try await store.keep(.ban(identity: "eve", room: "R", nil), now: 0)
        try await store.keep(.revocation(.token("t-1"), nil), now: 0)
        try await store.keep(.closure(room: "R", identity: nil, nil), now: 0)
        #expect(Set(try await store.load(now: 100_000)) == [Self.rules[0], Self.rules[4], Self.rules[6]])
        #expect(try await store.load(now: 200_000) == [Self.rules[0]], "what has run out is not given back")
    }

    @Test("A start with a clock that is far ahead deletes nothing: the next start gives back what holds by then")
    func wrongClock() async throws {
        for rule in Self.rules { try await store.keep(rule, now: 0) }
        #expect(Set(try await store.load(now: .max)) == [Self.rules[0], Self.rules[1]])
        #expect(Set(try await store.load(now: 100_000)) == Set(Self.rules))
    }

    @Test("What has run out a day ago is deleted with the next rule that is written, and presets are not")
    func cleaning() async throws {
        for rule in Self.rules { try await store.keep(rule, now: 0) }
        let kept = StandingRule.ban(identity: "bob", room: "R", .init(until: 1_000_000_000, reason: ""))
        try await store.keep(kept, now: 86_400_000 + 199_999)
        #expect(try await store.load(now: 0).count == Self.rules.count + 1)
        try await store.keep(kept, now: 86_400_000 + 200_000)
        #expect(Set(try await store.load(now: 0)) == [Self.rules[0], Self.rules[1], kept])
    }

    @Test("A preset that cannot be read is named and left out, and the others come back")
    func unreadable() async throws {
        try await store.keep(Self.rules[0], now: 0)
        let strange = RuleDatabase(database, encode: { _ in Array("{\"moon\":1}".utf8) }, decode: PolicyText.decode)
        try await strange.keep(.preset(name: "old", PolicyDocument()), now: 0)
        try await confirmation { named in
            let loaded = try await store.load(now: 0) { if $0 == "old" { named() } }
            #expect(loaded == [Self.rules[0]])
        }
    }
}
