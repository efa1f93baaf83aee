import EdgeSupport
import Foundation
import Testing

@testable import martlet

@Suite("Commands for operators")
struct OperatorTests {
    @Test("A table's columns are as wide as their widest cell, and what others have chosen cannot act on a terminal")
    func table() {
        var table = TextTable("ROOM", "N", "LOCK")
        table.add("a long name", "3", "open")
        table.add("\u{1b}[2Jx\u{7}", "", "")
        #expect(
            table.text == """
                ROOM         N  LOCK
                a long name  3  open
                \u{fffd}[2Jx\u{fffd}       -  -
                """)
    }

    @Test("An event is a line of its time, room and type with the members that it has")
    func eventLine() throws {
        let text =
            #"{"at":0,"id":"e-1","identity":"bob","code":"room_full","room":"R","roomSid":"RM_1","sequence":4,"type":"joinRefused"}"#
        let line = OperatorCommand.line(ofEvent: try JSONCoding.decode(JSONValue.self, from: Array(text.utf8)))
        #expect(line.hasSuffix("  R  joinRefused  code=room_full  identity=bob"))
        let ofServer =
            #"{"at":0,"id":"e-2","room":"","roomSid":"","sequence":1,"tokenId":"t","type":"revocationEnded"}"#
        let other = OperatorCommand.line(ofEvent: try JSONCoding.decode(JSONValue.self, from: Array(ofServer.utf8)))
        #expect(other.hasSuffix("  revocationEnded  tokenId=t") && !other.contains("   "), "\(other)")
    }

    @Test("An event's line cannot act on a terminal, whatever identity a join was refused for")
    func hostileEventLine() throws {
        let text =
            #"{"at":0,"id":"e-1","identity":"\u001b]0;x\u0007\u009b2J\nbob","room":"R","roomSid":"RM_1","type":"joinRefused"}"#
        let line = OperatorCommand.line(ofEvent: try JSONCoding.decode(JSONValue.self, from: Array(text.utf8)))
        #expect(line.hasSuffix("  R  joinRefused  identity=\u{fffd}]0;x\u{fffd}\u{fffd}2J\u{fffd}bob"), "\(line)")
    }

    @Test(
        "A share is shown in percent, 0 to 100, whatever number the server sends",
        arguments: [
            (.integer(0), "0%"), (.integer(1), "100%"), (.integer(.max), "100%"), (.integer(.min), "0%"),
            (.number(0.25), "25%"), (.number(1e300), "100%"), (.number(-1e300), "0%"), (.number(.infinity), "100%"),
            (.number(.nan), "0%"), (.null, ""), (.text("1"), ""),
        ] as [(JSONValue, String)])
    func percent(share: JSONValue, shown: String) { #expect(OperatorCommand.percent(share) == shown) }

    @Test("Paths and queries carry any text")
    func paths() {
        #expect(ControlClient.path("rooms", "a/b c?ä&", "policy") == "/rooms/a%2Fb%20c%3F%C3%A4%26/policy")
        #expect(ControlClient.query(["a": "x&y=z", "b": nil, "c": "1"]) == "?a=x%26y%3Dz&c=1")
        #expect(ControlClient.query(["a": nil]) == "")
    }

    @Test(
        "A wrong command line is reported with what is missing",
        arguments: [
            (["kick", "R", "--dev"], "missing PARTICIPANT"), (["participants", "--dev"], "missing ROOM"),
            (["rooms", "creat", "R", "--dev"], "'creat' is not expected here; did you mean 'create'?"),
            (["rooms", "list", "R", "--dev"], "'R' is not expected here"),
            (["policy", "set", "R", "a", "--dev"], "'a' is not FIELD=VALUE"),
            (["policy", "set", "R", "--dev"], "missing FIELD=VALUE"),
            (["rooms", "--server", "localhost", "--token", "x"], "is not a server's address"),
            (["kick", "R", "p", "q", "--dev"], "'q' is not expected here"),
        ])
    func wrong(arguments: [String], problem: String) {
        let error = #expect(throws: CommandError.self) {
            guard case .ask(let command) = try Command(arguments: arguments) else { return }
            try command.run { _ in }
        }
        #expect(error?.exitCode == 2 && error?.message.contains(problem) == true, "\(error?.message ?? "")")
    }

    @Test("Where no server listens the exit status is 3, and the message says where it was sought")
    func unreachable() {
        let error = #expect(throws: CommandError.self) {
            guard case .ask(let command) = try Command(arguments: ["rooms", "--dev", "--server", "http://127.0.0.1:1"])
            else { return }
            try command.run { _ in }
        }
        #expect(error?.exitCode == 3 && error?.message.contains("http://127.0.0.1:1") == true)
    }

    @Test("A given token needs no API key: the configuration says where the server is; without one a key is missing")
    func tokenWithoutKey() throws {
        guard case .ask(let command) = try Command(arguments: ["rooms", "--token", "x"]) else {
            Issue.record("not a command for operators")
            return
        }
        #expect(command.given["--token"] == "x")
        let error = #expect(throws: CommandError.self) { _ = try Command(arguments: ["rooms"]) }
        #expect(error?.exitCode == 1 && error?.message.contains("key") == true, "\(error?.message ?? "")")
    }

    @Test("bash completes commands, a command's options, and files behind --config")
    func bash() throws {
        func complete(_ words: String...) throws -> [String] {
            let process = Process()
            process.executableURL = URL(filePath: "/bin/bash")
            let line = words.map { "'\($0)'" }.joined(separator: " ")
            process.arguments = [
                "--norc", "-c",
                "\(try Completion.script(for: "bash"))\nCOMP_WORDS=(\(line)) COMP_CWORD=\(words.count - 1); _martlet; printf '%s\\n' \"${COMPREPLY[@]}\"",
            ]
            let pipe = Pipe()
            process.standardOutput = pipe
            try process.run()
            let data = pipe.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
        }
        #expect(try complete("martlet", "").sorted() == CommandSyntax.all.map(\.name).sorted())
        #expect(try complete("martlet", "part") == ["participants"])
        #expect(try complete("martlet", "kick", "R", "p", "--ba") == ["--ban"])
        #expect(try complete("martlet", "serve", "--config", "/etc/host").contains("/etc/hosts"))
        for shell in ["zsh", "fish"] { #expect(try Completion.script(for: shell).contains("participants")) }
        #expect(throws: CommandError.self) { try Completion.script(for: "tcsh") }
    }
}
