import Testing

@testable import Recorder

@Suite("The queue of recordings with finished files")
struct WorkQueueTests {
    @Test("A recording that was posted several times is worked on once, in the order of the first")
    func once() throws {
        let queue = try WorkQueue()
        for recording in ["RC_2", "RC_1", "RC_2", "RC_1", "RC_3"] { queue.post(recording) }
        #expect(queue.dequeueAll() == ["RC_2", "RC_1", "RC_3"])
        queue.post("RC_1")
        #expect(queue.dequeueAll() == ["RC_1"] && queue.dequeueAll().isEmpty)
    }
}
