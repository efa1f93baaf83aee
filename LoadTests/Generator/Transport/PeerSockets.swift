import CLoadIO
import Primitives

/// The addresses that simulated peers send from.
public enum PeerAddresses: Sendable, Hashable {
    /// Every peer has its own IPv4 address, counted up from this one, all on one socket: for servers that are
    /// reached over loopback (all of 127.0.0.0/8 is available) or a network routed to this machine. The cheapest way.
    case range(first: UInt32)
    /// Every peer has its own port on this address (0: any): for servers anywhere.
    case ports(address: UInt32)
}

/// The sockets of one media thread: the address or the socket at which a datagram arrives identifies its peer.
struct PeerSockets: ~Copyable {
    /// Bytes of the receive buffer of a socket that many peers share, and of one that one peer has.
    private static let sharedBuffer: Int32 = 128 << 20
    private static let ownBuffer: Int32 = 1 << 20

    let addresses: PeerAddresses
    private let receiveOffload: Bool
    let epoll: Int32
    private var descriptors: [Int32] = []
    private let commands: Int32
    private let receiver: OpaquePointer?
    let runs: UnsafeMutablePointer<loadio_run>
    private let messages: UnsafeMutablePointer<loadio_message>
    private var marks: [UInt32]
    /// The mark of a descriptor that is no socket: the wake signal.
    static let wakeMark = UInt32.max

    init(_ addresses: PeerAddresses, wake: Int32, receiveOffload: Bool = true) throws(LoadError) {
        self.addresses = addresses
        self.receiveOffload = receiveOffload
        epoll = loadio_epoll()
        commands = loadio_epoll()
        receiver = loadio_receiver_new()
        runs = .allocate(capacity: Int(LOADIO_RUNS))
        messages = .allocate(capacity: Int(LOADIO_SENDS))
        marks = [UInt32](repeating: 0, count: 64)
        guard epoll >= 0, commands >= 0, receiver != nil else { throw .system("epoll_create1") }
        _ = loadio_epoll_add(epoll, wake, Self.wakeMark)
        _ = loadio_epoll_add(commands, wake, Self.wakeMark)
        if case .range = addresses { _ = try open(0, Self.sharedBuffer) }
    }

    deinit {
        for descriptor in descriptors { closeDescriptor(descriptor) }
        closeDescriptor(epoll)
        closeDescriptor(commands)
        loadio_receiver_free(receiver)
        runs.deallocate()
        messages.deallocate()
    }

    private mutating func open(_ address: UInt32, _ size: Int32) throws(LoadError) -> Int {
        let descriptor = loadio_socket(address, 0, size, receiveOffload ? 1 : 0)
        guard descriptor >= 0 else { throw .system("socket") }
        _ = loadio_epoll_add(epoll, descriptor, UInt32(descriptors.count))
        descriptors.append(descriptor)
        return descriptors.count - 1
    }

    /// Gives peer number `index` its place: the address to send from and the socket to send by.
    mutating func place(peer index: Int) throws(LoadError) -> (address: UInt32, socket: Int) {
        switch addresses {
        case .range(let first): return (first + UInt32(index), 0)
        case .ports(let address): return (0, try open(address, Self.ownBuffer))
        }
    }

    /// The address of the first peer, if all share a port; the others' addresses are counted up.
    var firstAddress: SocketAddress? {
        guard case .range(let first) = addresses, let socket = descriptors.first else { return nil }
        return SocketAddress(ipv4: first, port: UInt16(clamping: loadio_port(socket)))
    }

    /// Sleeps until a socket is readable; returns the marks of those that are.
    mutating func wait(_ nanoseconds: Int64, into ready: inout [UInt32]) {
        ready.removeAll(keepingCapacity: true)
        let count = loadio_epoll_wait(epoll, &marks, Int32(marks.count), nanoseconds)
        for index in 0..<Int(count) { ready.append(marks[index]) }
    }

    /// Sleeps until somebody signals, whatever arrives meanwhile; true when somebody did.
    func waitForSignal(_ nanoseconds: Int64) -> Bool {
        var mark: UInt32 = 0
        return loadio_epoll_wait(commands, &mark, 1, nanoseconds) > 0
    }

    /// Whether all peers share the first socket.
    var isShared: Bool { if case .range = addresses { true } else { false } }

    /// Reads the next runs of a socket into `runs`; returns how many.
    func receive(_ socket: Int) -> Int { Int(loadio_receive(descriptors[socket], receiver, runs)) }

    /// The sender of a datagram: its source address (0: the socket's) and the socket; a negative one sends nothing.
    struct Origin {
        var address: UInt32
        var socket: Int32
    }

    /// Sends each datagram of `batch` from its origin; returns how many were sent.
    func send(_ batch: borrowing OutboundBatch, from origins: [Origin]) -> Int {
        let entries = batch.entries
        guard let arena = batch.arena.baseAddress else { return 0 }
        var next = 0
        var sent = 0
        while next < entries.count {
            let origin = origins[next]
            var count = 0
            while next < entries.count, count < Int(LOADIO_SENDS), origins[next].socket == origin.socket {
                let entry = entries[next]
                messages[count] = loadio_message(
                    bytes: (arena + entry.offset).assumingMemoryBound(to: UInt8.self), length: UInt32(entry.length),
                    from: origins[next].address, to: entry.destination.ipv4, to_port: entry.destination.port)
                count += 1
                next += 1
            }
            guard origin.socket >= 0 else { continue }
            let isAny: Int32 = origin.address != 0 ? 1 : 0
            var done = 0
            while done < count {
                let left = Int(
                    loadio_send(descriptors[Int(origin.socket)], messages + done, UInt32(count - done), isAny))
                sent += left
                // The one after those that were sent cannot be sent; the others may be.
                done += left + (left == count - done ? 0 : 1)
            }
        }
        return sent
    }

    /// Datagrams lost in our own receive buffers.
    var drops: UInt64 { descriptors.reduce(0) { $0 + UInt64(loadio_drops($1)) } }
}

/// What ends a load test before it has a result.
public enum LoadError: Error, CustomStringConvertible {
    /// A system call that failed.
    case system(String)
    /// The server refused, or its response cannot be understood.
    case signalling(String)
    /// The scenario or the command line requests something impossible.
    case usage(String)
    /// An encoder or the cryptography failed.
    case library(String)

    public var description: String {
        switch self {
        case .system(let call): "\(call) failed"
        case .signalling(let text), .usage(let text), .library(let text): text
        }
    }
}
