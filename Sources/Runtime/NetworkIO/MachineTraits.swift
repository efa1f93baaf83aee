import CLinux
import Glibc

/// Properties of the machine that affect how well media is served, and that an operator can change.
public enum MachineTraits {
    /// The buffer sizes, in bytes, that a media socket gets when it requests those of `UDPSocketConfiguration`: the process's right (CAP_NET_ADMIN) or
    /// net.core.rmem_max and net.core.wmem_max limit them.
    public static func grantedBuffers() -> (receive: Int, send: Int) {
        let wanted = UDPSocketConfiguration(port: 0)
        let descriptor = clinux_udp_socket(0, 0)
        guard descriptor >= 0 else { return (wanted.receiveBufferBytes, wanted.sendBufferBytes) }
        defer { close(descriptor) }
        // socket(7): the kernel doubles the requested size, for its own bookkeeping, and reports the double.
        return (
            Int(clinux_set_buffer(descriptor, 0, Int32(wanted.receiveBufferBytes))) / 2,
            Int(clinux_set_buffer(descriptor, 1, Int32(wanted.sendBufferBytes))) / 2
        )
    }

    /// Whether media threads may have priority over other programs.
    public static var mayPreferThreads: Bool { Scheduling.mayPreferThreads }

    /// Whether the clock is synchronized.
    public static var isClockKept: Bool { clinux_clock_is_kept() != 0 }

    /// Whether the processor has instructions for encryption.
    public static var hasAES: Bool { clinux_has_aes() != 0 }
}
