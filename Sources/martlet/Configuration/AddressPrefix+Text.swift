import NetworkIO
import Primitives

extension AddressPrefix {
    /// "10.0.0.0/8"; a single address stands for itself. nil if the text is neither.
    init?(text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let address = SocketAddress(numeric: String(parts[0])) else { return nil }
        let whole = address.isIPv4 ? 32 : 128
        guard let bits = parts.count == 2 ? Int(parts[1]) : whole else { return nil }
        self.init(address, bits: bits)
    }
}
