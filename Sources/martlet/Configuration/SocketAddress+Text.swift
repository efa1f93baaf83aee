import NetworkIO
import Primitives

extension SocketAddress {
    /// "192.0.2.7:40000" or "[2001:db8::7]:40000", or an address without a port, which is then 0; nil when the text is neither.
    init?(numericWithPort text: String) {
        if let address = SocketAddress(numeric: text) {
            self = address
            return
        }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else {
            return nil
        }
        var host = text[..<colon]
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        if isBracketed { host = host.dropFirst().dropLast() }
        // An IPv6 address ends where its bracket says, so that its last group is not taken for a port.
        guard let address = SocketAddress(numeric: String(host)), address.isIPv4 != isBracketed else { return nil }
        self.init(high: address.high, low: address.low, port: port)
    }

    /// As `init(numericWithPort:)` reads it.
    var textWithPort: String {
        if port == 0 { return host }
        return isIPv4 ? "\(host):\(port)" : "[\(host)]:\(port)"
    }
}

extension AddressPrefix {
    /// "10.0.0.0/8"; a single address stands for itself. Nil when the text is none.
    init?(text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let address = SocketAddress(numeric: String(parts[0])) else { return nil }
        let whole = address.isIPv4 ? 32 : 128
        guard let bits = parts.count == 2 ? Int(parts[1]) : whole else { return nil }
        self.init(address, bits: bits)
    }
}
