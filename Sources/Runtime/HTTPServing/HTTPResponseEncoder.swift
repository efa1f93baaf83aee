import Glibc

/// Writes the head of a response (RFC 9112 section 4).
struct HTTPResponseEncoder {
    /// The text of the Date field is updated once per second.
    private var date = (second: Int64.min, text: "")

    /// Status line and fields, followed by the empty line.
    mutating func head(
        of response: HTTPResponse, closes: Bool, wallMilliseconds: Int64
    ) -> [UInt8] {
        let status = (200...599).contains(response.status) ? response.status : 500
        var text = "HTTP/1.1 \(status) \(HTTPStatus.title(of: status))\r\n"
        for field in response.headers.fields where Self.mayWrite(field) { text += "\(field.name): \(field.value)\r\n" }
        text += "Date: \(dateText(wallMilliseconds / 1_000))\r\n"
        // RFC 9110 section 8.6: a response that cannot have a body has no length either.
        if Self.mayHaveBody(status), let length = response.length { text += "Content-Length: \(length)\r\n" }
        if closes { text += "Connection: close\r\n" }
        return Array((text + "\r\n").utf8)
    }

    /// Whether a response with this status has a body (RFC 9110 section 6.4.1).
    static func mayHaveBody(_ status: Int) -> Bool { status != 204 && status != 304 }

    /// Whether name and value are single lines, and the field is not one that only the server sets.
    private static func mayWrite(_ field: HTTPHeaders.Field) -> Bool {
        let own = ["content-length", "transfer-encoding", "connection", "date"]
        guard !field.name.isEmpty, !own.contains(where: { equalIgnoringCase($0, field.name) }) else { return false }
        return field.name.utf8.allSatisfy(HTTPRequestHead.isToken)
            && !field.value.utf8.contains { $0 == 0 || $0 == 0x0a || $0 == 0x0d }
    }

    /// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110 section 5.6.7).
    private mutating func dateText(_ second: Int64) -> String {
        if date.second == second { return date.text }
        var time = time_t(second)
        var parts = tm()
        gmtime_r(&time, &parts)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let day = "\(days[Int(parts.tm_wday) % 7]), \(two(parts.tm_mday)) \(months[Int(parts.tm_mon) % 12])"
        let clock = "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
        date = (second, "\(day) \(1_900 + Int(parts.tm_year)) \(clock) GMT")
        return date.text
    }
}
