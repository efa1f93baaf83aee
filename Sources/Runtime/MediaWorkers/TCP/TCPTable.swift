import MediaControl
import NetworkIO
import Primitives

/// The connections of one worker by number, and their limits.
///
/// A connection without a valid check proves nothing, so there are few places for those, and the oldest of them makes room for the next: a client that opens
/// thousands and sends nothing displaces its own.
struct TCPTable {
    /// The maximum numbers of connections.
    struct Limits: Sendable {
        /// In total.
        var connections: Int
        /// From one address: an office behind one NAT, where everybody has one for publishing and one for receiving, and opens another when the network
        /// changes.
        var perAddress = 1_024
        /// Without a valid check, in total. Checks follow the handshake by one round trip: enough for 500 joins per second over 500 ms.
        var unchecked = 512
        /// Without a valid check, from one address.
        var uncheckedPerAddress = 64
    }

    /// One IPv4 address, or one IPv6 network, all addresses of which belong to one owner.
    private struct Host: Hashable {
        let high: UInt64
        let low: UInt64

        init(_ address: SocketAddress) {
            high = address.high
            low = address.isIPv4 ? address.low : 0
        }
    }

    private struct Usage {
        var connections = 0
        var unchecked = 0
    }

    private let limits: Limits
    /// By number minus one: number 0 is UDP's.
    private var slots: [TCPConnection?] = []
    private var free: [UInt16] = []
    private var usage: [Host: Usage] = [:]
    private var unchecked = 0
    /// Connections in order of arrival, from `eldest` on; some of them have received a valid check or have ended since.
    private var arrivals: [(number: UInt16, serial: UInt64)] = []
    private var eldest = 0
    private var serial: UInt64 = 0
    private(set) var count = 0

    init(limits: Limits) { self.limits = limits }

    subscript(number: UInt16) -> TCPConnection? {
        let index = Int(number) - 1
        return index >= 0 && index < slots.count ? slots[index] : nil
    }

    /// All connections.
    var connections: some Sequence<TCPConnection> { slots.lazy.compactMap { $0 } }

    /// The connection that must make room for the next one: the oldest without a valid check, if there is no other room.
    mutating func displaced() -> TCPConnection? {
        guard unchecked >= limits.unchecked || count >= limits.connections else { return nil }
        while eldest < arrivals.count {
            let arrival = arrivals[eldest]
            eldest += 1
            if let connection = waiting(arrival) { return connection }
        }
        return nil
    }

    /// The connection of an arrival without a valid check.
    private func waiting(_ arrival: (number: UInt16, serial: UInt64)) -> TCPConnection? {
        guard let connection = self[arrival.number], connection.serial == arrival.serial, !connection.isKnown,
            connection.end == nil
        else { return nil }
        return connection
    }

    private mutating func noteArrival(_ connection: TCPConnection) {
        if arrivals.count >= 4 * limits.unchecked {
            arrivals = arrivals[eldest...].filter { waiting($0) != nil }
            eldest = 0
        }
        arrivals.append((connection.address.connection, connection.serial))
    }

    /// Whether there is room for one more from `address`.
    func allows(_ address: SocketAddress) -> Bool {
        let used = usage[Host(address)] ?? Usage()
        return count < limits.connections && used.connections < limits.perAddress
            && used.unchecked < limits.uncheckedPerAddress
    }

    /// Adds a connection from `address`, for which there is room.
    mutating func add(
        _ socket: TCPSocket, from address: SocketAddress, initial: [UInt8], at now: MonotonicTime
    ) -> TCPConnection {
        if free.isEmpty {
            slots.append(nil)
            free.append(UInt16(slots.count))
        }
        let number = free.removeLast()
        let own = SocketAddress(high: address.high, low: address.low, port: address.port, connection: number)
        serial += 1
        let connection = TCPConnection(socket, address: own, serial: serial, initial: initial, at: now)
        slots[Int(number) - 1] = connection
        usage[Host(address), default: Usage()].connections += 1
        usage[Host(address), default: Usage()].unchecked += 1
        unchecked += 1
        count += 1
        noteArrival(connection)
        return connection
    }

    /// A valid check has arrived on it.
    mutating func noteCheck(_ connection: TCPConnection) {
        guard !connection.isKnown else { return }
        connection.isKnown = true
        unchecked -= 1
        usage[Host(connection.address)]?.unchecked -= 1
    }

    mutating func remove(_ connection: TCPConnection) {
        let number = connection.address.connection, host = Host(connection.address)
        guard self[number] === connection else { return }
        slots[Int(number) - 1] = nil
        free.append(number)
        count -= 1
        if !connection.isKnown {
            unchecked -= 1
            usage[host]?.unchecked -= 1
        }
        usage[host]?.connections -= 1
        if usage[host]?.connections == 0 { usage[host] = nil }
    }
}
