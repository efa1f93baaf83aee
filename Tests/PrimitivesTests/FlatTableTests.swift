import Primitives
import Testing

@Suite("Flat tables")
struct FlatTableTests {
    @Test(
        "Random insertions and removals give the same content as a Dictionary", arguments: [1, 2, 3, 4, 5, 6, 7, 8])
    func churn(seed: UInt64) {
        var random = RandomSource(seed: seed)
        var table = FlatTable<UInt32>(capacity: 2)
        var model: [UInt32: Int] = [:]
        for _ in 0..<20_000 {
            // Few keys, so that they come back; some far apart that meet in one place.
            let key = UInt32.random(in: 0..<200, using: &random) &* (Bool.random(using: &random) ? 1 : 0x0100_0000)
            if Int.random(in: 0..<3, using: &random) > 0 {
                let value = Int.random(in: 0..<1_000_000, using: &random)
                table.set(key, to: value)
                model[key] = value
            } else {
                let removed = table.remove(key)
                #expect(removed == model.removeValue(forKey: key))
            }
            let count = table.count, found = table[key]
            #expect(count == model.count && found == model[key])
        }
        table.removeAll { key, _ in key % 2 == 0 }
        model = model.filter { $0.key % 2 != 0 }
        let count = table.count
        #expect(count == model.count)
        for (key, value) in model {
            let found = table[key]
            #expect(found == value)
        }
    }

    @Test("Values are found by a condition on keys and values, as many as asked for, and the next ones behind them")
    func valuesByCondition() {
        var table = FlatTable<UInt64>()
        for key in 0..<100 as Range<UInt64> { table.set(key, to: Int(key) + 1_000) }
        let expected = stride(from: 1_000, to: 1_100, by: 10).map { $0 }
        var place = 0
        var inTurn: [Int] = []
        for _ in 0..<5 { inTurn += table.values(atMost: 2, from: &place) { key, _ in key % 10 == 0 } }
        #expect(inTurn.sorted() == expected)
        let again = table.values(atMost: 2, from: &place) { key, _ in key % 10 == 0 }
        #expect(again == Array(inTurn.prefix(2)))
        let all = table.values(atMost: 100, from: &place) { key, value in
            key % 10 == 0 && value == Int(key) + 1_000
        }
        let none = table.values(atMost: 100, from: &place) { key, _ in key > 100 }
        #expect(all.sorted() == expected)
        #expect(none.isEmpty)
    }

    @Test("Zero and the largest number are valid keys and values")
    func edges() {
        var table = FlatTable<UInt64>()
        for key in [0, 1, UInt64.max] { table.set(key, to: key == 1 ? 0 : Int(UInt32.max) - 1) }
        let zero = table[0], one = table[1], most = table[.max], absent = table[2]
        #expect(zero == Int(UInt32.max) - 1 && one == 0 && most == Int(UInt32.max) - 1 && absent == nil)
    }

    @Test("Addresses are valid keys, whatever the seed")
    func addresses() {
        var table = FlatTable<SocketAddress>(seed: 7)
        let all = (0..<100).map { SocketAddress(ipv4: UInt32($0), port: UInt16($0)) }
        for (place, address) in all.enumerated() { table.set(address, to: place) }
        for (place, address) in all.enumerated() {
            let found = table[address]
            #expect(found == place)
        }
    }
}
