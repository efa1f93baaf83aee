import AccessTokens
import Primitives
import Testing

@testable import Rooms

@Suite("Tokens that were issued before an operator ended something")
struct TokenCutoffTests {
    private func code(
        _ cutoffs: TokenCutoffs, _ identity: String?, issuedAt: Int64? = nil, notBefore: Int64? = nil,
        room: String = "R",
        after: TimeSpan = .zero
    ) -> RoomError.Code? {
        let claims = AccessClaims(
            apiKey: "k", identity: identity, expiresAt: 0, notBefore: notBefore, issuedAt: issuedAt, video: .join(nil))
        do throws(RoomError) {
            try cutoffs.check(claims, room: room, now: MonotonicTime.zero + after)
            return nil
        } catch {
            return error.code
        }
    }

    private func cutoffs(_ identity: String?) -> TokenCutoffs {
        var cutoffs = TokenCutoffs()
        cutoffs.add(room: "R", identity: identity, second: 100, until: .zero + .seconds(60), now: .zero)
        return cutoffs
    }

    @Test(
        "iat decides, nbf where there is none, and a token without either is refused; one of the same second may be older",
        arguments: [
            (99, nil, true), (100, nil, true), (101, nil, false), (nil, 100, true), (nil, 101, false), (nil, nil, true),
            (101, 50, false), (50, 101, true),
        ] as [(Int64?, Int64?, Bool)])
    func ages(issuedAt: Int64?, notBefore: Int64?, isRefused: Bool) {
        let found = code(cutoffs(nil), "ada", issuedAt: issuedAt, notBefore: notBefore)
        #expect(found == (isRefused ? .roomClosed : nil))
    }

    @Test("A deleted room is closed to everybody, a removed participant's to that one, and no other room to anybody")
    func places() {
        #expect(code(cutoffs(nil), nil, issuedAt: 1) == .roomClosed)
        #expect(code(cutoffs(nil), "ada", issuedAt: 1, room: "Q") == nil)
        #expect(code(cutoffs("ada"), "ada", issuedAt: 1) == .participantRemoved)
        #expect(code(cutoffs("ada"), "bob", issuedAt: 1) == nil)
        #expect(code(cutoffs("ada"), "ada", issuedAt: 1, room: "Q") == nil)
    }

    @Test("It ends with its time; made anew by an operator, a room is open but for those who were removed")
    func ends() {
        #expect(code(cutoffs(nil), "ada", after: .milliseconds(59_999)) == .roomClosed)
        #expect(code(cutoffs(nil), "ada", after: .seconds(60)) == nil)
        var both = cutoffs("ada")
        both.add(room: "R", identity: nil, second: 100, until: .zero + .seconds(60), now: .zero)
        #expect(both.reopen(room: "R") && !both.reopen(room: "R"))
        #expect(code(both, "ada") == .participantRemoved && code(both, "bob") == nil)
    }

    @Test("Memory is bounded: what has ended goes, beyond the bound the oldest, and a renewed one keeps its newer time")
    func bounded() {
        var cutoffs = TokenCutoffs()
        for index in 0..<10_000 {
            cutoffs.add(
                room: "R", identity: "m\(index)", second: 100, until: .zero + .seconds(60), now: .zero)
        }
        #expect(cutoffs.count == TokenCutoffs.maximumCount)
        #expect(code(cutoffs, "m9999") == .participantRemoved && code(cutoffs, "m0") == nil)
        for second in 0..<10_000 as Range<Int64> {
            cutoffs.add(room: "R", identity: "ada", second: second, until: .zero + .seconds(70), now: .zero)
        }
        #expect(cutoffs.count == TokenCutoffs.maximumCount)
        #expect(code(cutoffs, "ada", issuedAt: 9_999) == .participantRemoved)
        #expect(code(cutoffs, "ada", issuedAt: 10_000) == nil)
        cutoffs.add(room: "R", identity: "x", second: 1, until: .zero + .seconds(99), now: .zero + .seconds(70))
        #expect(cutoffs.count == 1)
    }
}
