import Glibc
import NetworkIO
import Primitives

/// What the checks of a configuration must know of the machine. Tests give their own.
struct Machine: Sendable {
    /// Processors that threads may use.
    var processors: Int
    /// Network interfaces that are up, with the addresses that clients may be told.
    var interfaces: [NetworkInterface]
    /// Why no socket can be bound to an address; nil where one can.
    var refusal: @Sendable (SocketAddress) -> String?
    /// Seconds since 1970.
    var now: Int64

    /// This one, now.
    static var current: Machine {
        Machine(
            processors: Processors.usable.count, interfaces: NetworkInterfaces.all(),
            refusal: { address in
                do throws(SystemError) {
                    _ = try UDPSocket(UDPSocketConfiguration(address: address, port: 0))
                    return nil
                } catch {
                    return String(cString: strerror(error.code))
                }
            }, now: MonotonicClock.wallMilliseconds() / 1_000)
    }
}
