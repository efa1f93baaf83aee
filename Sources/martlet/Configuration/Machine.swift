import Glibc
import NetworkIO
import Primitives

/// What the checks of a configuration need to know about the machine. Tests supply their own.
struct Machine: Sendable {
    /// Processors that threads may use.
    var processors: Int
    /// Network interfaces that are up, with the addresses that may be announced to clients.
    var interfaces: [NetworkInterface]
    /// Why no socket can be bound to an address; nil if one can.
    var refusal: @Sendable (SocketAddress) -> String?
    /// Seconds since 1970.
    var now: Int64
    /// Whether the clock is synchronized.
    var isClockKept = true
    /// Whether every user of the machine can read or write a file.
    var isExposed: @Sendable (String) -> Bool = { _ in false }
    /// Why no folder can be made and written at a path, and why no database can be kept in a file; nil if it can.
    var folderRefusal: @Sendable (String) -> String? = { _ in nil }
    var databaseRefusal: @Sendable (String) -> String? = { _ in nil }
    /// Whether a file is in a folder or below it, after resolving links.
    var isInside: @Sendable (_ file: String, _ folder: String) -> Bool = { _, _ in false }
    /// The size of the buffer that a media socket gets when it requests what media needs, in bytes.
    var receiveBufferBytes = UDPSocketConfiguration(port: 0).receiveBufferBytes
    var sendBufferBytes = UDPSocketConfiguration(port: 0).sendBufferBytes
    /// Whether the processor has instructions for AES.
    var hasAES = true
    /// Whether media threads may take precedence over other programs.
    var mayPreferThreads = true

    /// This one, now.
    static var current: Machine {
        let buffers = MachineTraits.grantedBuffers()
        return Machine(
            processors: Processors.busyAtOnce(), interfaces: NetworkInterfaces.all(),
            refusal: { address in
                do throws(SystemError) {
                    _ = try UDPSocket(UDPSocketConfiguration(address: address, port: 0))
                    return nil
                } catch {
                    return String(cString: strerror(error.code))
                }
            }, now: MonotonicClock.wallMilliseconds() / 1_000, isClockKept: MachineTraits.isClockKept,
            isExposed: FileContents.isExposed, folderRefusal: WritablePlaces.refusalOfFolder,
            databaseRefusal: { WritablePlaces.refusalOfDatabase($0) },
            isInside: { WritablePlaces.isInside($0, folder: $1) }, receiveBufferBytes: buffers.receive,
            sendBufferBytes: buffers.send,
            hasAES: MachineTraits.hasAES, mayPreferThreads: MachineTraits.mayPreferThreads)
    }

    /// The same machine, while this process has its database open in the file at `path`.
    func holding(database path: String?) -> Machine {
        var machine = self
        machine.databaseRefusal = { WritablePlaces.refusalOfDatabase($0, holding: path) }
        return machine
    }
}
