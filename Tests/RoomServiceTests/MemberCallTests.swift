import Rooms
import Testing

@testable import RoomService

@Suite("Calls of the application's server to members")
struct MemberCallTests {
    private let bob = SessionID("SE_bob"), eve = SessionID("SE_eve")

    /// The macro takes no call that changes something.
    private func expect(_ found: Bool, _ wanted: Bool, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(found == wanted, sourceLocation: sourceLocation)
    }

    private func outcomes(_ stream: AsyncStream<CallAnswer.Outcome>) async -> [CallAnswer.Outcome] {
        var found: [CallAnswer.Outcome] = []
        for await outcome in stream { found.append(outcome) }
        return found
    }

    @Test("A result ends the call; the acknowledgement before it and what comes after it do not")
    func result() async {
        var calls = MemberCalls()
        let stream = calls.begin("1", to: bob)
        expect(calls.accept(CallAnswer(call: "1", .acknowledged), from: bob), true)
        expect(calls.accept(CallAnswer(call: "1", .returned("ok")), from: bob), true)
        expect(calls.accept(CallAnswer(call: "1", .returned("late")), from: bob), false)
        #expect(await outcomes(stream) == [.returned("ok")])
    }

    @Test("Only who was called answers: anybody else's reply is for a member that happens to use the same number")
    func others() async {
        var calls = MemberCalls()
        let stream = calls.begin("1", to: bob)
        expect(calls.accept(CallAnswer(call: "1", .returned("forged")), from: eve), false)
        expect(calls.accept(CallAnswer(call: "2", .returned("other")), from: bob), false)
        calls.end("1", unlessAcknowledged: false)
        #expect(await outcomes(stream).isEmpty)
    }

    @Test(
        "A call that has not arrived in time ends; one that has arrived goes on until its own end, or until its member leaves"
    )
    func time() async {
        var calls = MemberCalls()
        let lost = calls.begin("1", to: bob), slow = calls.begin("2", to: bob)
        expect(calls.accept(CallAnswer(call: "2", .acknowledged), from: bob), true)
        for number in ["1", "2"] { calls.end(number, unlessAcknowledged: true) }
        #expect(await outcomes(lost).isEmpty)
        expect(calls.accept(CallAnswer(call: "1", .returned("late")), from: bob), false)
        calls.end(to: eve)
        expect(calls.accept(CallAnswer(call: "2", .returned("ok")), from: bob), true)
        #expect(await outcomes(slow) == [.returned("ok")])
        let left = calls.begin("3", to: bob)
        calls.end(to: bob)
        #expect(await outcomes(left).isEmpty)
    }

    @Test("As many calls as the bound wait, and no more")
    func bound() {
        var calls = MemberCalls()
        let streams = (0..<MemberCalls.most).map { calls.begin(String($0), to: bob) }
        #expect(calls.isFull && streams.count == MemberCalls.most)
        calls.end("0", unlessAcknowledged: true)
        #expect(!calls.isFull)
    }
}
