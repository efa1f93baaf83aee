/// Parses an event stream (HTML standard, section 9.2.6) in the form that the server sends: an event has its `id` before its `data`, which is one
/// line. The stream begins with an `id` without data.
struct EventLines {
    /// Bytes whose line has not ended yet; the whole body if the response is no event stream.
    private(set) var rest: [UInt8] = []
    /// The id of the last event whose data arrived, or the one with which the stream began.
    private(set) var lastID: String?
    private var id: String?
    private var missesEvents = false

    /// Another answer begins.
    mutating func begin() {
        rest = []
        id = nil
    }

    /// The data of the events that `bytes` complete.
    mutating func append(_ bytes: UnsafeBufferPointer<UInt8>, areEvents: Bool) -> [String] {
        rest += bytes
        guard areEvents else { return [] }
        var found: [String] = []
        while let end = rest.firstIndex(of: 0x0a) {
            let line = String(decoding: rest[..<end], as: UTF8.self)
            rest.removeSubrange(...end)
            if line.hasPrefix("id: ") { id = String(line.dropFirst(4)) }
            if line == "event: eventsMissed" { missesEvents = true }
            if line.isEmpty { lastID = id ?? lastID }
            guard line.hasPrefix("data: {\"") else { continue }
            found.append(String(line.dropFirst(6)))
            lastID = id ?? lastID
        }
        return found
    }

    /// Whether the server has reported, since the last call of this, that it no longer keeps all requested events.
    mutating func consumeMissed() -> Bool {
        defer { missesEvents = false }
        return missesEvents
    }
}
