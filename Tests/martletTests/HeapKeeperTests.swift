import Testing

@testable import martlet

@Suite("Heap keeper")
struct HeapKeeperTests {
    /// Whether memory was due to be given back at each of these moments, one after the other.
    private func due(_ keeper: inout HeapKeeper, _ moments: [(mebibytes: UInt64, connections: Int)]) -> [Bool] {
        var due: [Bool] = []
        for moment in moments {
            due.append(keeper.isDue(residentBytes: moment.mebibytes << 20, connections: moment.connections))
        }
        return due
    }

    @Test(
        "Memory is returned to the system when half of a load has ended, once, and again when half of the rest has, unless that is small"
    )
    func halfEnded() {
        var keeper = HeapKeeper(residentBytes: 50 << 20)
        let growing = due(&keeper, [(60, 0), (300, 1_000), (300, 501)])
        #expect(growing == [false, false, false])
        let falling = due(&keeper, [(300, 500)])
        #expect(falling == [true])
        keeper.gaveBack(residentBytes: 200 << 20, connections: 500)
        let half = due(&keeper, [(210, 251), (200, 250)])
        #expect(half == [false, true])
        keeper.gaveBack(residentBytes: 150 << 20, connections: 63)
        // What is left is in use, until more comes.
        let afterwards = due(&keeper, [(160, 0), (167, 0)])
        #expect(afterwards == [false, true])
    }

    @Test("Memory of refused requests is returned even without any connection")
    func withoutConnections() {
        var keeper = HeapKeeper(residentBytes: 50 << 20)
        let refused = due(&keeper, [(100, 0)])
        #expect(refused == [true])
    }

    @Test(
        "What hostile requests took while a call goes on is returned after a minute without more connections, once",
        arguments: [1, 10]
    )
    func steadyLoad(connections: Int) {
        var keeper = HeapKeeper(residentBytes: 50 << 20)
        let minute = due(&keeper, Array(repeating: (mebibytes: 100, connections: connections), count: 13))
        #expect(minute == Array(repeating: false, count: 12) + [true])
        keeper.gaveBack(residentBytes: 60 << 20, connections: connections)
        let next = due(&keeper, Array(repeating: (mebibytes: 75, connections: connections), count: 20))
        #expect(!next.contains(true), "what is left is in use")
        // A join begins another minute.
        let joined = due(&keeper, [(200, connections + 1), (200, connections + 1)])
        #expect(joined == [false, false])
    }
}
