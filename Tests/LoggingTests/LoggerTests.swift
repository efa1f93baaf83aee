import Glibc
import Primitives
import Synchronization
import Testing

@testable import Logging

@Suite("Logger")
struct LoggerTests {
    /// Keeps the lines.
    final class Lines: Sendable {
        private let lines = Mutex<[String]>([])
        var all: [String] { lines.withLock { $0 } }
        func output(level: LogLevel = .info, format: LogFormat = .text, showAddresses: Bool = false) -> LogOutput {
            LogOutput(level: level, format: format, showAddresses: showAddresses) { line in
                self.lines.withLock { $0.append(line) }
            }
        }
    }

    @Test("A line below the level is not evaluated and not written")
    func levels() {
        let lines = Lines()
        let logger = Logger("test", output: lines.output(level: .warning))
        var evaluations = 0
        func value() -> String {
            evaluations += 1
            return "x"
        }
        logger.info(value(), ["field": .text(value())])
        logger.debug(value())
        #expect(evaluations == 0)
        logger.warning(value(), ["field": .text(value())])
        logger.named("other").error(value())
        #expect(evaluations == 3)
        #expect(
            lines.all.map { $0.split(separator: " ", maxSplits: 1)[1] } == [
                "warning test: x field=x", "error other: x",
            ])
    }

    @Test("Text lines quote values that are not one word, and no value starts a line of its own")
    func text() {
        let formatter = LogFormatter(format: .text, showAddresses: false)
        let line = formatter.line(
            seconds: 1_767_225_599, milliseconds: 7, level: .info, component: "http", message: "a\nb",
            fields: ["n": .number(42), "s": "two words", "q": "a\"b", "e": "", "r": 0.5, "f": true, "l": "x\ny"])
        #expect(
            line == #"2025-12-31T23:59:59.007Z info http: a\nb n=42 s="two words" q="a\"b" e="" r=0.5 f=true l="x\ny""#)
    }

    @Test("No value and no message acts on the terminal that shows it, in either format", arguments: LogFormat.allCases)
    func terminals(_ format: LogFormat) {
        let line = LogFormatter(format: format, showAddresses: false).line(
            seconds: 0, milliseconds: 0, level: .info, component: "c", message: "\u{9b}2J\u{1b}[2J",
            fields: ["identity": "\u{9b}2J", "name": "é\u{85}\u{7f}"])
        #expect(line.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7f..<0xa0).contains($0.value) })
        #expect(line.contains(#"\u009b2J"#) && line.contains(#"é\u0085\u007f"#))
    }

    @Test("JSON lines are valid JSON, whatever they contain")
    func json() {
        let formatter = LogFormatter(format: .json, showAddresses: false)
        let line = formatter.line(
            seconds: 0, milliseconds: 0, level: .error, component: "c", message: "\u{1}\"\\é",
            fields: ["n": .number(UInt64.max), "nan": .real(.nan), "flag": false])
        let expected =
            #"{"time":"1970-01-01T00:00:00.000Z","level":"error","component":"c","message":"\u0001\"\\é","#
            + #""n":9223372036854775807,"nan":null,"flag":false}"#
        #expect(line == expected)
    }

    @Test("Addresses are redacted unless configured otherwise")
    func addresses() {
        let address = SocketAddress(ipv4: 0xc000_0207, port: 5)
        let lines = Lines()
        Logger("a", output: lines.output()).info("m", ["from": .address(address), "host": .host("2001:db8:1::5")])
        Logger("a", output: lines.output(showAddresses: true)).info("m", ["from": .address(address)])
        #expect(lines.all[0].hasSuffix("from=192.0.x.x host=2001:db8:x"))
        #expect(lines.all[1].hasSuffix("from=192.0.2.7"))
    }

    @Test(
        "What remains of a redacted address",
        arguments: [
            ("192.0.2.7", "192.0.x.x"), ("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("2001:db8::1", "2001:db8:x"),
            ("example.org", "x"), ("", "x"),
        ])
    func redaction(_ host: String, _ shown: String) {
        #expect(redactedHost(host) == shown)
    }

    @Test("Each level has a name, and each name is a level")
    func words() {
        for level in LogLevel.allCases { #expect(LogLevel(word: level.word) == level) }
        #expect(LogLevel(word: "loud") == nil)
        #expect(LogLevel.debug < .error)
    }

    @Test("Lines of concurrent tasks stay whole")
    func threads() async {
        let lines = Lines()
        let logger = Logger("t", output: lines.output())
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<100 { group.addTask { logger.info("line", ["number": .number(number)]) } }
        }
        #expect(lines.all.count == 100)
        #expect(Set(lines.all.map { $0.split(separator: " ").last }).count == 100)
    }

    @Test(
        "A component's level changes for all its loggers while they live, and nobody else's; an unknown component changes nothing"
    )
    func changedLevels() {
        let lines = Lines()
        let output = lines.output()
        let first = Logger("http", output: output), second = Logger("http", output: output)
        let other = Logger("rooms", output: output)
        #expect(output.setLevels(["http": .debug]) == nil)
        #expect(first.writes(.debug) && second.writes(.debug) && !other.writes(.debug))
        #expect(output.setLevels(["http": .error, "moon": .debug]) == "moon")
        #expect(first.writes(.debug))
        #expect(output.levels == ["http": .debug, "rooms": .info])
    }

    @Test(
        "Who reads the log and stands still holds nobody up: what finds no room is lost and counted, and lines that come are whole"
    )
    func slowReader() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        let writer = LineWriter(ends[1])
        for number in 0..<10_000 {
            writer.write("\(number) \(String(repeating: "x", count: number % 7 == 0 ? 6_000 : 100))\n")
        }
        writer.reportLost { _ in
            Issue.record("it is still full")
            return ""
        }
        var read: [UInt8] = []
        func empty() {
            var piece = [UInt8](repeating: 0, count: 1 << 20)
            var asked = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
            while poll(&asked, 1, 0) > 0 { read += piece[..<Glibc.read(ends[0], &piece, piece.count)] }
        }
        empty()
        var lost = 0
        writer.reportLost {
            lost = $0
            return "lost\n"
        }
        writer.write("last\n")
        empty()
        let lines = String(decoding: read, as: UTF8.self).split(separator: "\n")
        #expect(lines.suffix(2) == ["lost", "last"])
        let whole = lines.dropLast(2).filter { line in
            let number = Int(line.prefix { $0 != " " }) ?? -1
            return line.count == "\(number) ".count + (number % 7 == 0 ? 6_000 : 100)
        }
        #expect(whole.count + lost == 10_000)
        #expect(lines.count - 2 - whole.count <= 1, "one line may have lost its end")
    }

    @Test("Lines that a full disk does not take are counted until a line that says so is written")
    func fullDisk() throws {
        let descriptor = open("/dev/full", O_WRONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        let writer = LineWriter(descriptor)
        var reported: [Int] = []
        func report() {
            writer.reportLost {
                reported.append($0)
                return "lost\n"
            }
        }
        for _ in 0..<4 {
            report()
            writer.write("line\n")
        }
        #expect(reported == [1, 2, 3])
        // Now there is room.
        let other = open("/dev/null", O_WRONLY | O_CLOEXEC)
        try #require(other >= 0 && dup2(other, descriptor) == descriptor)
        close(other)
        for _ in 0..<2 { report() }
        #expect(reported == [1, 2, 3, 4], "once")
    }
}
