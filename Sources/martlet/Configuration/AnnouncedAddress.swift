import MediaWorkers
import NetworkIO
import Primitives

/// One element of `media.announced_addresses`.
enum AnnouncedAddress: Sendable, Hashable {
    case address(SocketAddress)
    /// What a STUN server says.
    case discover

    init?(text: String) {
        if text == "discover" {
            self = .discover
        } else if let address = SocketAddress(numericWithPort: text) {
            self = .address(address)
        } else {
            return nil
        }
    }

    /// As `init` reads it.
    var text: String {
        switch self {
        case .address(let address): address.textWithPort
        case .discover: "discover"
        }
    }
}

extension Configuration {
    /// `media.announced_addresses` as it is written.
    var announcedAddresses: [AnnouncedAddress] {
        get { (media.discoversAddresses ? [.discover] : []) + media.advertisedAddresses.map { .address($0) } }
        set {
            media.discoversAddresses = newValue.contains(.discover)
            media.advertisedAddresses = newValue.compactMap {
                if case .address(let address) = $0 { address } else { nil }
            }
        }
    }
}

/// `HOST` or `HOST:PORT`, with an IPv6 address in brackets.
struct HostAndPort: Sendable, Hashable, CustomStringConvertible {
    var host: String
    var port: UInt16

    /// The port is `defaultPort` if the text has none; nil if it is no host.
    init?(text: String, defaultPort: UInt16) {
        if let address = SocketAddress(numericWithPort: text) {
            (host, port) = (address.host, address.port == 0 ? defaultPort : address.port)
            return
        }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let name = parts.first, !name.isEmpty, name.allSatisfy(Self.isLetterOfName) else { return nil }
        guard let port = parts.count == 1 ? defaultPort : UInt16(parts[1]), port > 0 else { return nil }
        (host, self.port) = (String(name), port)
    }

    private static func isLetterOfName(_ letter: Character) -> Bool {
        letter.isASCII && (letter.isLetter || letter.isNumber || "-._".contains(letter))
    }

    var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
