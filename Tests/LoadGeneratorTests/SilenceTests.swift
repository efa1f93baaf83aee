import Testing

@testable import LoadGenerator

@Suite("Silences")
struct SilenceTests {
    @Test("The longest time between two packets counts, over all connections, and so does the one that goes on")
    func longest() {
        let silence = Silence()
        #expect(silence.longest(until: 9_000) == 0, "nothing has ever come")
        for time: Int64 in [1_000, 1_020, 1_100, 1_120] { silence.note(at: time) }
        #expect(silence.longest(until: 1_130) == 80)
        #expect(silence.longest(until: 1_900) == 780)
        // Two connections at once: what comes late by one of them opens no gap.
        silence.note(at: 1_115)
        silence.note(at: 1_140)
        #expect(silence.longest(until: 1_140) == 80)
    }

    @Test("After a restart only what follows counts")
    func restart() {
        let silence = Silence()
        silence.note(at: 1_000)
        silence.note(at: 5_000)
        silence.restart(at: 6_000)
        silence.note(at: 6_030)
        #expect(silence.longest(until: 6_040) == 30)
    }
}
