import Testing

@testable import NetworkIO

@Suite
struct BlockingCallsTests {
    @Test("Calls run in one other thread, and none after its end")
    func thread() async throws {
        let calls = try BlockingCalls(thread: "test-calls", mostWaiting: 1)
        let first = await calls.run { currentThread() }
        let second = await calls.run { currentThread() }
        #expect(first != nil && first == second)
        #expect(first != currentThread())
        calls.stop()
        let late = await calls.run { 1 }
        #expect(late == nil)
    }

    @Test("Who comes while as many wait as may is sent away")
    func bound() async throws {
        let calls = try BlockingCalls(thread: "test-calls", mostWaiting: 0)
        let refused = await calls.run { 1 }
        #expect(refused == nil)
        calls.stop()
    }
}
