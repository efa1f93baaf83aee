import EdgeSupport
import Foundation
import HTTPServing
import MediaEngine
import MediaWorkers
import NetworkIO
import Primitives
import RoomService
import Testing

@testable import martlet

@Suite("Configuration")
struct ConfigurationTests {
    private func apply(_ text: String) throws -> (Configuration, [String]) { try apply([:], over: text) }

    private func apply(_ environment: [String: String], over text: String = "") throws -> (Configuration, [String]) {
        var reader = ConfigurationReader()
        reader.apply(try YAMLDocument(parsing: text), from: "m.yaml")
        reader.apply(environment)
        return (reader.configuration, reader.faults.map(\.description))
    }

    @Test("A file's values end up in their settings")
    func values() throws {
        let (configuration, faults) = try apply(
            """
            http: {bind: 127.0.0.1, port: 8080}
            media:
              udp_port: 9000
              announced_addresses: [192.0.2.1, "2001:db8::1"]
              consent_timeout: 20
              interfaces: [eth0, wg*]
              networks: [10.0.0.0/8, "2001:db8::/32", 192.0.2.7]
            keys:
              app: 0123456789abcdef0123456789abcdef
            rooms: {default: Hall}
            """)
        #expect(faults.isEmpty)
        #expect(configuration.http == .init(host: "127.0.0.1", port: 8_080))
        #expect(configuration.media.udpBasePort == 9_000)
        #expect(configuration.media.advertisedAddresses.map(\.host) == ["192.0.2.1", "2001:db8::1"])
        #expect(configuration.media.advertisedAddresses.allSatisfy { $0.port == 0 })
        #expect(configuration.media.engine.consentTimeout == .seconds(20))
        #expect(configuration.media.addressFilter.interfaces == ["eth0", "wg*"])
        #expect(configuration.media.addressFilter.networks.map(\.bits) == [8, 32, 32])
        #expect(configuration.rooms.defaultRoom == "Hall")
        #expect(configuration.keyFaults.isEmpty)
        #expect(configuration.origins["media.udp_port"] == .file("m.yaml", line: 3))
    }

    @Test("ICE servers are addresses, or objects with credentials")
    func iceServers() throws {
        let (configuration, faults) = try apply(
            """
            ice_servers:
              - stun:stun.example.org:3478
              - urls: [turn:turn.example.org, "turns:turn.example.org:443?transport=tcp"]
                username: martlet
                credential: "it's: secret"
            """)
        #expect(faults.isEmpty)
        let relay = ICEServer(
            urls: ["turn:turn.example.org", "turns:turn.example.org:443?transport=tcp"], username: "martlet",
            credential: "it's: secret")
        #expect(configuration.iceServers.map(\.server) == [ICEServer(urls: ["stun:stun.example.org:3478"]), relay])
    }

    @Test("The environment overrides the file")
    func environment() throws {
        let (configuration, faults) = try apply(
            [
                "MARTLET_HTTP_PORT": "2", "MARTLET_KEYS": "a:b, c:d",
                "MARTLET_MEDIA_ANNOUNCED_ADDRESSES": "192.0.2.7, ::1",
                "MARTLET_ROOMS_DEFAULT": "Hall, west", "MARTLET_HTTP_ALLOWED_ORIGINS": "",
            ], over: "http: {port: 1}")
        #expect(faults.isEmpty && configuration.http.port == 2)
        #expect(configuration.keys == ["a": "b", "c": "d"])
        #expect(configuration.media.advertisedAddresses.map(\.host) == ["192.0.2.7", "::1"])
        #expect(configuration.rooms.defaultRoom == "Hall, west", "one value may have commas")
        #expect(configuration.allowedOrigins == [])
    }

    @Test(
        "ICE servers with credentials are written in YAML in the environment",
        arguments: [
            "[{urls: turn:t.example, username: u, credential: p}]",
            "{urls: [turn:t.example], username: u, credential: p}",
        ])
    func iceServersOfTheEnvironment(text: String) throws {
        let (configuration, faults) = try apply(["MARTLET_ICE_SERVERS": text])
        #expect(faults == [])
        #expect(
            configuration.iceServers.map(\.server) == [
                ICEServer(urls: ["turn:t.example"], username: "u", credential: "p")
            ])
    }

    @Test(
        "MARTLET_KEYS_NAME sets the secret of the key NAME: of the file's key whatever its case, else of the name in lower case"
    )
    func keysOfTheEnvironment() throws {
        #expect(try apply(["MARTLET_KEYS_APP": "s"]).0.keys == ["app": "s"])
        #expect(try apply(["MARTLET_KEYS_MY_APP": "s"]).0.keys == ["my_app": "s"])
        #expect(try apply(["MARTLET_KEYS_APP": "s"], over: "keys: {App: old, b: c}").0.keys == ["App": "s", "b": "c"])
        #expect(
            try apply(["MARTLET_KEYS_APP": "s"], over: "keys: {App: old, app: c}").1 == [
                "MARTLET_KEYS_APP: matches more than one key, 'App' and 'app'; use MARTLET_KEYS=NAME:SECRET"
            ])
    }

    @Test(
        "Misspelled variables are faults with the nearest name",
        arguments: [
            ("MARTLET_HTTP_PROT", "1", "there is no such setting; did you mean MARTLET_HTTP_PORT?"),
            ("MARTLET_PORT", "8080", "there is no such setting; did you mean MARTLET_HTTP_PORT?"),
            ("MARTLET_KEY", "app:s", "there is no such setting; did you mean MARTLET_KEYS?"),
            ("MARTLET_UDP_PORT", "1", "there is no such setting; did you mean MARTLET_MEDIA_UDP_PORT?"),
            ("MARTLET_LOGLEVEL", "debug", "there is no such setting; did you mean MARTLET_LOG_LEVEL?"),
            ("MARTLET_HTTP_COLOUR", "red", "there is no such setting; 'martlet help settings' lists them"),
            ("MARTLET_HTTP_PORT", "x", "'x' is not valid; expected 0 to 65535"),
            ("MARTLET_HTTP_PORT", "", "is empty; unset it or give it a value: 0 to 65535"),
            ("MARTLET_KEYS", "secret", "expected NAME:SECRET, separated by commas"),
            (
                "MARTLET_KEYS_App", "s",
                "must be in upper case; for a key name with lower case use MARTLET_KEYS=NAME:SECRET"
            ),
            (
                "MARTLET_ICE_SERVERS", "stun:a,turn:b",
                "'turn:b' needs 'username' and 'credential', without which browsers refuse to connect; "
                    + "write {urls: \"turn:b\", username: NAME, credential: SECRET}, or a 'secret' that the server shares"
            ),
        ])
    func wrongVariables(name: String, value: String, problem: String) throws {
        let (configuration, faults) = try apply([name: value])
        #expect(faults == ["\(name): \(problem)"] && configuration.warnings.isEmpty)
    }

    @Test("Unknown variables are warned about; those that container runtimes and other programs set are not")
    func foreignVariables() throws {
        let (configuration, faults) = try apply([
            "MARTLET_SEED": "1", "MARTLET_SERVICE_HOST": "10.0.0.1", "MARTLET_SERVICE_PORT_HTTP": "7880",
            "MARTLET_PORT": "tcp://10.0.0.1:7880", "MARTLET_PORT_7880_TCP_ADDR": "10.0.0.1", "PATH": "/bin",
        ])
        #expect(faults == [])
        #expect(configuration.warnings.map(\.description) == ["MARTLET_SEED: there is no such setting; it is ignored"])
    }

    @Test("A fault between settings names the variable that set one of them")
    func originOfVariables() throws {
        let environment = ["MARTLET_MEDIA_UDP_PORT": "65535", "MARTLET_KEYS_APP": String(repeating: "k", count: 32)]
        let faults = try ConfigurationFaultTests.load("media: {workers: 2}", environment: environment).faults
        #expect(
            faults.count == 1 && faults[0].hasPrefix("MARTLET_MEDIA_UDP_PORT: 2 workers need the ports 65535 to 65536"))
    }

    @Test("C16: without TLS, a proxy or an explicit setting only this machine is served")
    func loopbackOnly() {
        var configuration = Configuration()
        #expect(!configuration.servesOtherMachines && configuration.publicHTTP.servesLoopbackOnly)
        configuration.trustedProxy = true
        #expect(configuration.servesOtherMachines && !configuration.publicHTTP.servesLoopbackOnly)
        configuration.becomeDevelopment()
        #expect(configuration.publicHTTP.servesLoopbackOnly, "development never serves others")
        #expect(configuration.media.engine.admittedHosts.contains { $0.host == "127.0.0.1" })
        configuration = Configuration()
        configuration.insecure = true
        #expect(configuration.servesOtherMachines && !configuration.publicHTTP.servesLoopbackOnly)
        configuration = Configuration()
        configuration.tlsCertificatePath = "certificate.pem"
        #expect(configuration.servesOtherMachines && !configuration.publicHTTP.servesLoopbackOnly)
    }

    @Test("A development server that other machines could reach is refused, unless insecure is set")
    func development() throws {
        let refusal = "--dev accepts tokens signed with a publicly known secret; remove"
        for (text, fault) in [
            (
                "http: {bind: 192.0.2.2}",
                "m.yaml:1: http.bind: \(refusal) http.bind instead of setting it to 192.0.2.2, or set insecure: true"
            ),
            (
                "http: {bind: '::'}",
                "m.yaml:1: http.bind: \(refusal) http.bind instead of setting it to ::, or set insecure: true"
            ),
            (
                "private: {bind: 0.0.0.0}",
                "m.yaml:1: private.bind: \(refusal) private.bind instead of setting it to 0.0.0.0, or set insecure: true"
            ),
            ("trusted_proxy: true", "m.yaml:1: trusted_proxy: \(refusal) trusted_proxy, or set insecure: true"),
        ] {
            #expect(try ConfigurationFaultTests.load(text, development: true).faults == [fault])
            let open = try ConfigurationFaultTests.load("\(text)\ninsecure: true", development: true)
            let isPublic = !text.hasPrefix("private")
            #expect(open.faults == [] && open.configuration?.servesOtherMachines == isPublic)
            #expect(open.configuration?.media.engine.admittedHosts.isEmpty == isPublic)
        }
        let variable = try ConfigurationFaultTests.load(
            "", environment: ["MARTLET_HTTP_BIND": "0.0.0.0"], development: true)
        #expect(variable.faults.first?.hasPrefix("MARTLET_HTTP_BIND: \(refusal)") == true)
        for text in ["", "http: {bind: 127.0.0.2}", "http: {bind: '::1'}"] {
            let confined = try ConfigurationFaultTests.load(text, development: true)
            #expect(confined.faults == [] && confined.configuration?.publicHTTP.servesLoopbackOnly == true)
            #expect(confined.configuration?.media.engine.admittedHosts.isEmpty == false)
        }
        let open = try #require(try ConfigurationFaultTests.load("insecure: true", development: true).configuration)
        #expect(open.http.host == "127.0.0.1", "--dev alone opens nothing")
        #expect(!open.media.engine.admittedHosts.isEmpty)
    }

    @Test("A command that does not serve needs the keys but neither files nor addresses")
    func withoutMachine() throws {
        let text = "http: {bind: 198.51.100.1, tls: {certificate: /none, key: /none}}\n\(ConfigurationFaultTests.key)"
        #expect(try ConfigurationFaultTests.load(text, on: nil).faults == [])
        #expect(
            try ConfigurationFaultTests.load("http: {port: 1}", on: nil).faults == [Configuration.noKey.description])
    }

    @Test("check-config prints the warnings of the start")
    func warnings() throws {
        func warnings(_ text: String) throws -> [String] {
            try ConfigurationFaultTests.load(text + ConfigurationFaultTests.key).warnings
        }
        #expect(try warnings("").count == 1)
        #expect(try warnings("")[0].hasPrefix("only clients on this machine are served"))
        #expect(try warnings("insecure: true") == [])
        #expect(
            try warnings("insecure: true\nmedia:\n  announced_addresses: [203.0.113.9]\n  interfaces: [nothing]") == [
                "m.yaml:4: media.interfaces: has no effect: media.announced_addresses names the addresses"
            ])
    }

    @Test("Each setting accepts the text that it prints")
    func roundTrip() throws {
        let initial = Configuration()
        for setting in Setting.all {
            let text = setting.show(initial)
            guard !text.isEmpty else { continue }
            var copy = initial
            let texts = text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            let nodes = texts.map { YAMLDocument.Node(content: .text($0), line: 1) }
            try setting.apply(&copy, setting.isList ? .init(content: .list(nodes), line: 1) : nodes[0])
            #expect(setting.show(copy) == text, "\(setting.path)")
        }
    }

    @Test("The table in the README matches the program's settings")
    func readme() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        let table = Setting.rows.map {
            "| `\($0.path)` | \($0.initial.isEmpty ? "" : "`\($0.initial)`") | \($0.summary) |"
        }
        let rows = readme.split(separator: "\n").map(String.init).filter { $0.hasPrefix("| `") && $0.contains("` | ") }
        let missing = table.filter { !rows.contains($0) }
        #expect(missing.isEmpty, "put these into README.md:\n\(table.joined(separator: "\n"))")
        let paths = Set(Setting.rows.map(\.path))
        let stale = rows.filter { row in
            !table.contains(row) && paths.contains { row.hasPrefix("| `\($0)`") }
        }
        #expect(stale.isEmpty)
    }

    @Test("Each setting has its own path and variable")
    func uniqueSettings() {
        #expect(Set(Setting.all.map(\.variable)).count == Setting.all.count)
        #expect(Set(Setting.all.map(\.path)).count == Setting.all.count)
        #expect(Setting.all.first { $0.path == "media.udp_port" }?.variable == "MARTLET_MEDIA_UDP_PORT")
    }

    @Test(
        "Announced addresses may have a port; an IPv6 address is then in brackets",
        arguments: [
            ("192.0.2.7", "192.0.2.7", 0), ("192.0.2.7:40000", "192.0.2.7", 40_000),
            ("[2001:db8::7]:40000", "2001:db8::7", 40_000), ("2001:db8::7:4000", "2001:db8::7:4000", 0),
        ])
    func announcedPort(text: String, host: String, port: UInt16) throws {
        let address = try #require(SocketAddress(numericWithPort: text))
        #expect(address.host == host && address.port == port)
        #expect(address.textWithPort == text)
    }

    @Test(
        "An invalid address with a port is refused",
        arguments: [
            "", ":40000", "192.0.2.7:", "192.0.2.7:0", "192.0.2.7:65536", "[192.0.2.7]:1", "[2001:db8::7]", "a:1",
        ])
    func badAnnouncedPort(text: String) {
        #expect(SocketAddress(numericWithPort: text) == nil)
    }
}
