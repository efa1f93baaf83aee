import EdgeSupport
import Foundation
import NetworkIO

/// The commands with which operators call a running server: `martlet rooms`, `participants`, `kick`, `move`, `policy`, `events`, `sessions`, `jobs`, `reach`.
struct OperatorCommand {
    let syntax: CommandSyntax
    let given: CommandArguments
    let client: ControlClient

    init(_ syntax: CommandSyntax, _ given: CommandArguments) throws(CommandError) {
        self.syntax = syntax
        self.given = given
        client = try ControlClient(given)
    }

    /// Runs the command; prints its results with `output`, and other messages with `remark`.
    func run(
        _ output: @escaping (String) -> Void, remark: @escaping (String) -> Void = { _ in }
    ) throws(CommandError) {
        switch syntax.name {
        case "rooms": try rooms(output)
        case "participants": try participants(output)
        case "kick": try kick(output)
        case "move": try move(output)
        case "policy": try policy(output)
        case "events": try events(output, remark)
        case "sessions": try sessions(output)
        case "jobs": try jobs(output)
        case "reach":
            _ = try operands()
            try reach(output)
        default: throw syntax.wrong("there is no such command")
        }
    }

    /// The operands for these names; more are an error unless `hasMore` is set.
    func operands(_ names: String..., andMore hasMore: Bool = false) throws(CommandError) -> [String] {
        guard given.operands.count >= names.count else { throw syntax.wrong("missing \(names[given.operands.count])") }
        guard hasMore || given.operands.count == names.count else {
            throw syntax.wrong("'\(given.operands[names.count])' is not expected here")
        }
        return given.operands
    }

    /// Prints the response unchanged for scripts, or else what `table` makes of it.
    func show(
        _ answer: ControlClient.Answer, _ output: @escaping (String) -> Void, _ table: (JSONValue) -> String
    ) {
        output(given.has("--json") ? String(decoding: answer.body, as: UTF8.self) : table(answer.value))
    }

    private func rooms(_ output: @escaping (String) -> Void) throws(CommandError) {
        switch given.operands.first {
        case nil, "list":
            _ = given.operands.isEmpty ? [] : try operands("list")
            show(try client.all("/rooms", "rooms"), output, Self.table(ofRooms:))
        case "show":
            let room = try operands("show", "ROOM")[1]
            show(try client.call("GET", ControlClient.path("rooms", room)), output) { Self.pretty($0) }
        case "create":
            let room = try operands("create", "ROOM")[1]
            var creation = ["name": room]
            creation["beside"] = given["--beside"]
            creation["preset"] = given["--preset"]
            let answer = try client.call("POST", "/rooms", JSONCoding.encode(creation))
            show(answer, output) { "room \($0["name"].cell) was created" }
        case "delete":
            let room = try operands("delete", "ROOM")[1]
            show(try client.call("DELETE", ControlClient.path("rooms", room)), output) { _ in "room \(room) was deleted"
            }
        case let word?:
            throw syntax.wrong(
                "'\(word)' is not expected here\(Spelling.hint(for: word, among: ["list", "show", "create", "delete"]))"
            )
        }
    }

    private static func table(ofRooms value: JSONValue) -> String {
        var table = TextTable("ROOM", "PARTICIPANTS", "PUBLISHERS", "LOCK", "SINCE")
        for room in value["rooms"].elements {
            table.add(
                room["name"].cell, room["participants"].cell, room["publishers"].cell, room["lock"].cell,
                time(room["createdAt"]))
        }
        return table.text
    }

    private func participants(_ output: @escaping (String) -> Void) throws(CommandError) {
        let room = try operands("ROOM")[0]
        show(try client.all(ControlClient.path("rooms", room, "participants"), "participants"), output) { value in
            var table = TextTable("IDENTITY", "NAME", "PROFILE", "TRACKS", "QUALITY", "SINCE", "SID")
            for one in value["participants"].elements {
                table.add(
                    one["identity"].cell, one["name"].cell, one["profile"].cell,
                    one["tracks"].elements.map { $0["source"].cell }.joined(separator: ","), one["quality"].cell,
                    Self.time(one["joinedAt"]), one["sid"].cell)
            }
            return table.text
        }
    }

    private func kick(_ output: @escaping (String) -> Void) throws(CommandError) {
        let words = try operands("ROOM", "PARTICIPANT")
        let query = ControlClient.query(["reason": given["--reason"], "ban": given["--ban"]])
        let answer = try client.call("DELETE", ControlClient.path("rooms", words[0], "participants", words[1]) + query)
        show(answer, output) { _ in "\(words[1]) was removed from \(words[0])" }
    }

    private func move(_ output: @escaping (String) -> Void) throws(CommandError) {
        let words = try operands("ROOM", "PARTICIPANT", "OTHER")
        let path = ControlClient.path("rooms", words[0], "participants", words[1], "move")
        show(try client.call("POST", path, JSONCoding.encode(["room": words[2]])), output) { _ in
            "\(words[1]) was moved from \(words[0]) to \(words[2])"
        }
    }

    private func events(
        _ output: @escaping (String) -> Void, _ remark: @escaping (String) -> Void
    ) throws(CommandError) {
        let base = given["--room"].map { ControlClient.path("rooms", $0, "events") } ?? "/events"
        let print: (String) -> Void = { text in
            let value = (try? JSONCoding.decode(JSONValue.self, from: Array(text.utf8))) ?? .null
            output(given.has("--json") ? text : Self.line(ofEvent: value))
        }
        guard given.has("--follow") else {
            // Reads page after page until one contains nothing new.
            var after = given["--after"] ?? "0"
            while true {
                let value = try client.call("GET", base + ControlClient.query(["after": after, "limit": "1000"])).value
                if value["missesEvents"] == .flag(true) { remark(ControlClient.missed) }
                for event in value["events"].elements { print(JSONCoding.encodeText(event)) }
                guard !value["events"].elements.isEmpty else { return }
                after = value["next"].cell
            }
        }
        try client.follow(base + ControlClient.query(["after": given["--after"]]), remark: remark, print)
    }

    /// What happened, in one line.
    static func line(ofEvent event: JSONValue) -> String {
        let known = ["at", "type", "room", "roomSid", "id", "sequence", "info", "track", "permissions"]
        guard case .object(let members) = event else { return "" }
        let rest = members.filter { !known.contains($0.key) }.sorted { $0.key < $1.key }
        let fields =
            rest.map { "\($0.key)=\($0.value.cell)" } + (members["track"].map { ["track=\($0["sid"].cell)"] } ?? [])
        // Events of the server have no room.
        let place = [event["room"].cell].filter { !$0.isEmpty }
        // The identity of a refused join is unchecked text from its token.
        return TextTable.safe(([time(event["at"])] + place + [event["type"].cell] + fields).joined(separator: "  "))
    }

    private func sessions(_ output: @escaping (String) -> Void) throws(CommandError) {
        let query = ControlClient.query([
            "room": given["--room"], "identity": given["--identity"], "limit": given["--limit"],
        ])
        _ = try operands()
        show(try client.call("GET", "/sessions" + query), output) { value in
            var table = TextTable(
                "ROOM", "IDENTITY", "LEFT", "SECONDS", "REASON", "QUALITY", "RECEIVED", "SENT", "SESSION")
            for one in value["sessions"].elements {
                table.add(
                    one["room"].cell, one["identity"].cell, Self.time(one["leftAt"]), one["durationSeconds"].cell,
                    one["reason"].cell, one["averageQuality"].cell, one["bytesReceived"].cell, one["bytesSent"].cell,
                    one["session"].cell)
            }
            return table.text
        }
    }

    /// Local time to the second.
    static func time(_ milliseconds: JSONValue) -> String {
        guard case .integer(let value) = milliseconds else { return "" }
        var seconds = time_t(value / 1_000)
        var parts = tm()
        localtime_r(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return
            "\(1_900 + parts.tm_year)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday)) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
    }

    /// JSON for people.
    static func pretty(_ value: JSONValue) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}

// MARK: Policy

extension OperatorCommand {
    private static let mergePatch = "application/merge-patch+json"

    private func policy(_ output: @escaping (String) -> Void) throws(CommandError) {
        guard given.operands.count >= 2 else {
            throw syntax.wrong("missing \(given.operands.isEmpty ? "get, set or edit" : "ROOM")")
        }
        let path = ControlClient.path("rooms", given.operands[1], "policy")
        switch given.operands[0] {
        case "get":
            _ = try operands("get", "ROOM")
            show(try client.call("GET", path), output) { Self.pretty($0) }
        case "set":
            let query = ControlClient.query(["dryRun": given.has("--dry-run") ? "true" : nil])
            let answer = try client.call("PATCH", path + query, try patch(), type: Self.mergePatch)
            show(answer, output) { Self.pretty($0) }
        case "edit":
            _ = try operands("edit", "ROOM")
            try edit(path, output)
        case let word:
            throw syntax.wrong(
                "'\(word)' is not expected here\(Spelling.hint(for: word, among: ["get", "set", "edit"]))")
        }
    }

    /// FIELD=VALUE as members of an object, added to the given ones: a value that is JSON is used as such, an empty one is null, anything else is a text.
    func members(
        of words: some Sequence<String>, _ others: [String: JSONValue] = [:]
    ) throws(CommandError) -> [String: JSONValue] {
        var members = others
        for word in words {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty else { throw syntax.wrong("'\(word)' is not FIELD=VALUE") }
            members[String(parts[0])] = Self.value(String(parts[1]))
        }
        return members
    }

    /// A merge patch: an empty value lets the layer below decide.
    private func patch() throws(CommandError) -> [UInt8] {
        let members = try members(of: given.operands.dropFirst(2))
        guard !members.isEmpty else { throw syntax.wrong("missing FIELD=VALUE") }
        return JSONCoding.encode(JSONValue.object(members))
    }

    private static func value(_ text: String) -> JSONValue {
        if text.isEmpty { return .null }
        return (try? JSONCoding.decode(JSONValue.self, from: Array(text.utf8))) ?? .text(text)
    }

    /// Opens the policy in the user's editor and applies the changes.
    private func edit(_ path: String, _ output: @escaping (String) -> Void) throws(CommandError) {
        let read = try client.call("GET", path)
        let before = read.value
        let editor = Editor(environment: ProcessInfo.processInfo.environment)
        let edited = try editor.edit(Self.pretty(before) + "\n")
        guard case .object(let old) = before,
            case .object(let new)? = try? JSONCoding.decode(JSONValue.self, from: edited)
        else {
            throw CommandError(
                message: "martlet: what was edited is no JSON object; the policy is unchanged", exitCode: 1)
        }
        // Only the differences: everything else stays as the layers below define it.
        var changes = new.filter { old[$0.key] != $0.value }
        for name in old.keys where new[name] == nil { changes[name] = .null }
        guard !changes.isEmpty else { return output("the policy is unchanged") }
        // The edit applies to the policy that was shown: if somebody else changed it meanwhile, the server refuses.
        let answer = try client.call(
            "PATCH", path, JSONCoding.encode(JSONValue.object(changes)), type: Self.mergePatch, ifMatch: read.tag)
        show(answer, output) { Self.pretty($0) }
    }
}
