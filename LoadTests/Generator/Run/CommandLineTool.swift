import AccessTokens
import Foundation

/// `loadtest run` and the other subcommands.
public enum CommandLineTool {
    private static let usage = """
        usage: loadtest run SCENARIO.json [--url URL] [--driver martlet|livekit|whip|janus] [--NAME VALUE …] [options]

          Options override any number of a scenario: --subscribers 500 --video.kbps 300 --seconds 60

          --url URL              the server (http://127.0.0.1:7880)
          --driver NAME          its signalling protocol: martlet (martlet.v1), livekit (two connections), whip (WHIP and WHEP), janus (VideoRoom over HTTP)
          --key NAME --secret S  sign tokens with this key (the development key)
          --token TOKEN          use this token instead
          --server-pid PID[,PID] the server's processes (the processes that listen on the URL's port)
          --threads N            media threads of the generator (1)
          --timers WHICH         independent: each peer sends at its own time; shared: on a common grid, which costs the generator less (shared)
          --receive-offload X    on: peers receive runs of datagrams in one piece, as from a network card with receive offload; off: one by one (on)
          --peer-addresses A     first address of the peers (127.1.0.1), or "ports": one port per peer on any address
          --srtp aes-cm          peers offer only AES_CM_128_HMAC_SHA1_80, as older clients do (aes-gcm: only AES-GCM)
          --room NAME            prefix of the rooms' names (load)
          --json FILE            write the report as JSON
          --html FILE            write it as a page with plots
          --label NAME           name of the server in comparisons
          --quiet                no progress line

               loadtest compare [--html FILE] REPORT.json …    runs of several servers in one table
               loadtest self-test [--seconds N]                check the generator's report against a relay with known faults
        """

    /// Runs the command and ends the process with its status.
    public static func run(_ arguments: [String]) async {
        do {
            let rest = Array(arguments.dropFirst(2))
            switch arguments.dropFirst().first {
            case "run": try await load(ParsedLine(rest))
            case "compare": try compare(ParsedLine(rest))
            case "self-test": try await selfTest(ParsedLine(rest))
            default: throw LoadError.usage(usage)
            }
        } catch {
            FileHandle.standardError.write(Data("loadtest: \(error)\n".utf8))
            exit(2)
        }
    }

    private static func load(_ line: ParsedLine) async throws {
        let scenario = try Scenario.load(file: line.files.first, overrides: line.overrides)
        let report = try await LoadRun(scenario: scenario, options: line.options).run()
        print(report.table)
        if let path = line.json { try report.json().write(to: URL(fileURLWithPath: path)) }
        if let path = line.html { try Data(report.html().utf8).write(to: URL(fileURLWithPath: path)) }
        exit(report.counts.delivered > 0 ? 0 : 1)
    }

    private static func compare(_ line: ParsedLine) throws {
        let reports = try line.files.map { file in
            try JSONDecoder().decode(RunReport.self, from: Data(contentsOf: URL(fileURLWithPath: file)))
        }
        let comparison = Comparison(reports)
        print(comparison.table)
        if let path = line.html {
            try Data(comparison.html.utf8).write(to: URL(fileURLWithPath: path))
            print("\n\(path)")
        }
        exit(reports.isEmpty ? 1 : 0)
    }

    private static func selfTest(_ line: ParsedLine) async throws {
        let seconds = line.overrides.first { $0.path == "seconds" }.flatMap { Double($0.value) } ?? 5
        let findings = try await SelfTest(seconds: seconds).run()
        for finding in findings {
            let name = finding.name.padding(toLength: 38, withPad: " ", startingAt: 0)
            print(
                "  \(finding.isRight ? "right" : "WRONG")  \(name) injected \(finding.injected), reported \(finding.reported)"
            )
        }
        exit(findings.allSatisfy(\.isRight) ? 0 : 1)
    }
}

/// The arguments of the command, by kind.
struct ParsedLine {
    var files: [String] = []
    var options = RunOptions()
    var overrides: [(path: String, value: String)] = []
    var json: String?
    var html: String?

    init(_ words: [String]) throws(LoadError) {
        var words = words[...]
        var secret: String?
        var key: String?
        while let word = words.popFirst() {
            guard word.hasPrefix("--") else {
                files.append(word)
                continue
            }
            if word == "--quiet" {
                options.isQuiet = true
                continue
            }
            if word == "--follow-drains" {
                options.followsDrains = true
                continue
            }
            guard let value = words.popFirst() else { throw .usage("missing value for \(word)") }
            switch word {
            case "--url": options.url = value.hasSuffix("/") ? String(value.dropLast()) : value
            case "--driver": options.driver = value
            case "--token": options.token = value
            case "--key": key = value
            case "--secret": secret = value
            case "--server-pid": options.serverProcesses = value.split(separator: ",").compactMap { Int32($0) }
            case "--threads": options.threads = Int(value) ?? 1
            case "--timers":
                guard let timers = PeerTimers(rawValue: value) else {
                    throw .usage("--timers must be shared or independent, not '\(value)'")
                }
                options.timers = timers
            case "--receive-offload":
                guard ["on", "off"].contains(value) else {
                    throw .usage("--receive-offload must be on or off, not '\(value)'")
                }
                options.receiveOffload = value == "on"
            case "--room": options.roomPrefix = value
            case "--srtp": overrides.append(("srtpProfiles", try Self.profiles(value)))
            case "--json": json = value
            case "--html": html = value
            case "--label": options.label = value
            case "--peer-addresses":
                if value == "ports" {
                    options.addresses = .ports(address: 0)
                } else if let first = ipv4(value) {
                    options.addresses = .range(first: first)
                } else {
                    throw .usage("'\(value)' is not an IPv4 address")
                }
            default: overrides.append((String(word.dropFirst(2)), value))
            }
        }
        if let key, let secret { options.key = APIKey(name: key, secret: secret) }
    }

    private static func profiles(_ name: String) throws(LoadError) -> String {
        switch name {
        case "aes-cm": return "SRTP_AES128_CM_SHA1_80"
        case "aes-gcm": return "SRTP_AEAD_AES_128_GCM"
        default: throw .usage("--srtp must be aes-cm or aes-gcm, not '\(name)'")
        }
    }
}
