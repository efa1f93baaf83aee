import NetworkIO
import Primitives
import Testing

@testable import MediaWorkers

@Suite("Bounds of TCP connections")
struct TCPTableTests {
    private static let limits = TCPTable.Limits(connections: 6, perAddress: 4, unchecked: 3, uncheckedPerAddress: 2)

    private static func address(_ host: UInt32, _ port: UInt16) -> SocketAddress {
        SocketAddress(ipv4: host, port: port)
    }

    private func add(_ host: UInt32, _ port: UInt16, _ table: inout TCPTable) -> TCPConnection {
        table.add(TCPSocket(descriptor: -1), from: Self.address(host, port), initial: [], at: .zero)
    }

    @Test("F9: a connection has a number that is not UDP's 0, and the address of its client")
    func numbers() {
        var table = TCPTable(limits: Self.limits)
        let one = add(1, 10, &table), two = add(1, 11, &table)
        #expect(one.address.isTCP && two.address.isTCP && one.address != two.address)
        #expect(table[one.address.connection] === one && table[0] == nil && table[99] == nil)
        table.remove(one)
        #expect(table[one.address.connection] == nil && table.count == 1)
        #expect(add(2, 5, &table).address.connection == one.address.connection, "numbers are used again")
    }

    @Test("F9: an address has few connections without a check, and more with one")
    func perAddress() {
        var table = TCPTable(limits: Self.limits)
        let connections = (0..<2).map { add(1, $0, &table) }
        #expect(!table.allows(Self.address(1, 9)) && table.allows(Self.address(2, 9)))
        connections.forEach { table.noteCheck($0) }
        let more = (2..<4).map { add(1, $0, &table) }
        more.forEach { table.noteCheck($0) }
        #expect(!table.allows(Self.address(1, 9)), "four from one address")
        table.remove(more[0])
        #expect(table.allows(Self.address(1, 9)))
    }

    @Test("F9: one IPv6 network counts as one address")
    func networks() {
        var table = TCPTable(limits: Self.limits)
        for port in 1...2 as ClosedRange<UInt64> {
            let own = SocketAddress(high: 0x2001_0db8_0000_0001, low: port, port: 1)
            _ = table.add(TCPSocket(descriptor: -1), from: own, initial: [], at: .zero)
        }
        #expect(!table.allows(SocketAddress(high: 0x2001_0db8_0000_0001, low: 77, port: 1)))
        #expect(table.allows(SocketAddress(high: 0x2001_0db8_0000_0002, low: 77, port: 1)))
    }

    @Test("F9: the oldest connection without a check makes room for the next; one with a check never does")
    func displaced() {
        var table = TCPTable(limits: Self.limits)
        let known = add(1, 1, &table)
        table.noteCheck(known)
        let waiting = (1...3).map { add(UInt32($0) + 1, 1, &table) }
        #expect(table.displaced() === waiting[0])
        table.remove(waiting[0])
        #expect(table.displaced() == nil, "there is room again")
        _ = add(9, 1, &table)
        #expect(table.displaced() === waiting[1])
    }

    @Test("F9: connections that come and go leave nothing behind, and numbers stay low")
    func churn() {
        var table = TCPTable(limits: Self.limits)
        for round in 0..<10_000 {
            let connection = add(UInt32(round % 50) + 1, UInt16(round % 60_000) + 1, &table)
            #expect(connection.address.connection == 1)
            if round % 2 == 0 { table.noteCheck(connection) }
            table.remove(connection)
        }
        #expect(table.count == 0 && table.allows(Self.address(1, 1)) && table.displaced() == nil)
    }
}
