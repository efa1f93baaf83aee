import Glibc
public import Primitives

extension SocketAddress {
    /// A numeric IPv4 or IPv6 address without a port; nil if the text is not one.
    public init?(numeric text: String) {
        var v4 = in_addr()
        if inet_pton(AF_INET, text, &v4) == 1 {
            self.init(ipv4: UInt32(bigEndian: v4.s_addr), port: 0)
            return
        }
        var v6 = in6_addr()
        guard inet_pton(AF_INET6, text, &v6) == 1 else { return nil }
        let words = withUnsafeBytes(of: &v6) { bytes in
            (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        self.init(high: UInt64(bigEndian: words.0), low: UInt64(bigEndian: words.1), port: 0)
    }

    /// "192.0.2.7:40000" or "[2001:db8::7]:40000", or an address without a port, which is then 0; nil if the text is neither.
    public init?(numericWithPort text: String) {
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
        // An IPv6 address ends at its bracket, so that its last group is not taken for a port.
        guard let address = SocketAddress(numeric: String(host)), address.isIPv4 != isBracketed else { return nil }
        self.init(high: address.high, low: address.low, port: port)
    }

    /// As `init(numericWithPort:)` reads it.
    public var textWithPort: String {
        if port == 0 { return host }
        return isIPv4 ? "\(host):\(port)" : "[\(host)]:\(port)"
    }
}
