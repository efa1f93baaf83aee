import CLinux
import Glibc

/// What of the machine decides how well media is served, and what an operator can change.
public enum MachineTraits {
    /// What a media socket gets that asks for `UDPSocketConfiguration`'s buffers, in bytes: the process's right (CAP_NET_ADMIN) or net.core.rmem_max and
    /// net.core.wmem_max bound it.
    public static func grantedBuffers() -> (receive: Int, send: Int) {
        let wanted = UDPSocketConfiguration(port: 0)
        let descriptor = clinux_udp_socket(0, 0)
        guard descriptor >= 0 else { return (wanted.receiveBufferBytes, wanted.sendBufferBytes) }
        defer { close(descriptor) }
        // socket(7): the kernel doubles what it is asked for, for its own bookkeeping, and tells the double.
        return (
            Int(clinux_set_buffer(descriptor, 0, Int32(wanted.receiveBufferBytes))) / 2,
            Int(clinux_set_buffer(descriptor, 1, Int32(wanted.sendBufferBytes))) / 2
        )
    }

    /// Whether media threads may go before other programs.
    public static var mayPreferThreads: Bool { Scheduling.mayPreferThreads }

    /// Whether something keeps the clock right.
    public static var isClockKept: Bool { clinux_clock_is_kept() != 0 }

    /// Whether the processor encrypts with instructions of its own.
    public static var hasAES: Bool { clinux_has_aes() != 0 }
}
