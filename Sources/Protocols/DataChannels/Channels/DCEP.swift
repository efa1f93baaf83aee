import Primitives

/// Messages of the Data Channel Establishment Protocol (RFC 8832 section 5).
///
/// ```text
/// | message type 3 | channel type  |           priority            |
/// |                    reliability parameter                      |
/// |         label length          |        protocol length        |
/// | label … | protocol …                                          |
/// ```
enum DCEPMessage: Equatable {
    case open(DataChannelTerms)
    case acknowledgement

    private static let openType: UInt8 = 3, acknowledgementType: UInt8 = 2
    /// Bit of the channel type for channels without order.
    private static let unordered: UInt8 = 0x80
    /// Priority "normal" (RFC 8831 section 6.4). Nobody uses it.
    private static let priority: UInt16 = 256

    /// nil when it is malformed, or longer than any channel needs.
    init?(_ bytes: [UInt8]) {
        guard let type = bytes.first else { return nil }
        guard type != Self.acknowledgementType else {
            self = .acknowledgement
            return
        }
        guard type == Self.openType, bytes.count >= 12 else { return nil }
        func number(_ offset: Int) -> Int { Int(bytes[offset]) << 8 | Int(bytes[offset + 1]) }
        let label = number(8), subprotocol = number(10)
        guard label <= DataChannelTerms.longestName, subprotocol <= DataChannelTerms.longestName,
            bytes.count >= 12 + label + subprotocol,
            let name = String(validating: bytes[12..<(12 + label)], as: UTF8.self),
            let spoken = String(validating: bytes[(12 + label)..<(12 + label + subprotocol)], as: UTF8.self)
        else { return nil }
        let parameter = number(4) << 16 | number(6)
        let reliability: DataReliability
        switch bytes[1] & ~Self.unordered {
        case 0: reliability = .reliable
        case 1: reliability = .retransmissions(parameter)
        case 2: reliability = .lifetime(.milliseconds(Int64(parameter)))
        default: return nil
        }
        self = .open(
            DataChannelTerms(
                label: name, subprotocol: spoken, isOrdered: bytes[1] & Self.unordered == 0, reliability: reliability))
    }

    /// The message on the wire.
    var bytes: [UInt8] {
        guard case .open(let terms) = self else { return [Self.acknowledgementType] }
        var type: UInt8 = terms.isOrdered ? 0 : Self.unordered, parameter: UInt32 = 0
        switch terms.reliability {
        case .reliable: break
        case .retransmissions(let most):
            type |= 1
            parameter = UInt32(clamping: most)
        case .lifetime(let time):
            type |= 2
            parameter = UInt32(clamping: time.milliseconds)
        }
        let label = Array(terms.label.utf8), subprotocol = Array(terms.subprotocol.utf8)
        var bytes: [UInt8] = [Self.openType, type]
        bytes.append(number: Self.priority)
        bytes.append(number: parameter)
        bytes.append(number: UInt16(clamping: label.count))
        bytes.append(number: UInt16(clamping: subprotocol.count))
        return bytes + label + subprotocol
    }
}

/// The kind of a message's payload (RFC 8831 section 8).
enum PayloadIdentifier {
    static let control: UInt32 = 50
    private static let text: UInt32 = 51, partialBinary: UInt32 = 52, binary: UInt32 = 53, partialText: UInt32 = 54
    private static let emptyText: UInt32 = 56, emptyBinary: UInt32 = 57

    /// The message; nil for identifiers that mean nothing here. The two outdated "partial" ones are taken as whole messages.
    static func payload(_ message: ReceivedMessage) -> DataPayload? {
        switch message.identifier {
        case text, partialText: DataPayload(isText: true, bytes: message.payload)
        case binary, partialBinary: DataPayload(isText: false, bytes: message.payload)
        case emptyText: DataPayload(isText: true, bytes: [])
        case emptyBinary: DataPayload(isText: false, bytes: [])
        default: nil
        }
    }

    /// Identifier and bytes for SCTP, which cannot carry an empty message: it has one zero byte instead.
    static func encode(_ payload: DataPayload) -> (identifier: UInt32, bytes: [UInt8]) {
        if payload.bytes.isEmpty { return (payload.isText ? emptyText : emptyBinary, [0]) }
        return (payload.isText ? text : binary, payload.bytes)
    }
}
