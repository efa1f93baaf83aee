import Glibc
import Primitives

/// Formats the parts of one line. Pure except for the calendar.
struct LogFormatter: Sendable {
    let format: LogFormat
    let showAddresses: Bool

    func line(
        seconds: Int, milliseconds: Int, level: LogLevel, component: String, message: String, fields: LogFields
    ) -> String {
        let time = Self.timestamp(seconds: seconds, milliseconds: milliseconds)
        switch format {
        case .text:
            var line = "\(time) \(level.word) \(component): \(Self.printable(message))"
            for (key, value) in fields { line += " \(key)=\(textValue(value))" }
            return line
        case .json:
            var line = "{\"time\":\"\(time)\",\"level\":\"\(level.word)\",\"component\":\(Self.quoted(component))"
            line += ",\"message\":\(Self.quoted(message))"
            for (key, value) in fields { line += ",\(Self.quoted(key)):\(jsonValue(value))" }
            return line + "}"
        }
    }

    /// RFC 3339 in UTC.
    static func timestamp(seconds: Int, milliseconds: Int) -> String {
        var moment = time_t(seconds)
        var parts = tm()
        gmtime_r(&moment, &parts)
        func padded(_ value: Int, _ width: Int) -> String {
            let digits = String(value)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        let date =
            "\(padded(Int(parts.tm_year) + 1900, 4))-\(padded(Int(parts.tm_mon) + 1, 2))-"
            + padded(Int(parts.tm_mday), 2)
        let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { padded(Int($0), 2) }.joined(separator: ":")
        return "\(date)T\(clock).\(padded(milliseconds, 3))Z"
    }

    private func textValue(_ value: LogValue) -> String {
        let text = plain(value)
        let needsQuotes =
            text.isEmpty || text.utf8.contains { $0 == 0x20 || $0 == 0x22 || $0 == 0x3d }
            || text.unicodeScalars.contains(where: Self.isControl)
        return needsQuotes ? Self.quoted(text) : text
    }

    private func jsonValue(_ value: LogValue) -> String {
        switch value {
        case .number(let number): String(number)
        case .real(let number): number.isFinite ? "\(number)" : "null"
        case .flag(let flag): flag ? "true" : "false"
        case .text, .address, .host: Self.quoted(plain(value))
        }
    }

    private func plain(_ value: LogValue) -> String {
        switch value {
        case .text(let text): text
        case .number(let number): String(number)
        case .real(let number): "\(number)"
        case .flag(let flag): flag ? "true" : "false"
        case .address(let address): showAddresses ? address.host : redactedHost(address.host)
        case .host(let host): showAddresses ? host : redactedHost(host)
        }
    }

    /// Text with control characters escaped: external input cannot start a second line in the log.
    static func printable(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        return String(quoted(text).dropFirst().dropLast())
    }

    /// Also those above ASCII: U+009B begins a sequence for a terminal as ESC [ does.
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || (0x7f..<0xa0).contains(scalar.value)
    }

    static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where isControl(scalar):
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}

/// An address with its personal part removed: the /16 of an IPv4 address, the /32 of an IPv6 one, and `x` for anything else.
///
/// Loopback stays as it is; it names no person.
public func redactedHost(_ host: String) -> String {
    if host == "127.0.0.1" || host == "::1" || host == "0:0:0:0:0:0:0:1" { return host }
    let v4 = host.split(separator: ".", omittingEmptySubsequences: false)
    if v4.count == 4, !host.contains(":") { return "\(v4[0]).\(v4[1]).x.x" }
    let groups = host.split(separator: ":", omittingEmptySubsequences: false)
    if groups.count > 2, !groups[0].isEmpty { return "\(groups[0]):\(groups[1]):x" }
    return "x"
}
