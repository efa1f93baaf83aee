import Cryptography
import Foundation
import NetworkIO
import Primitives
import Testing

@testable import martlet

/// Every wrong configuration: what the file says, and the lines that `check-config` and `serve` print, with file and line.
@Suite("Configuration faults")
struct ConfigurationFaultTests {
    /// A text that is wrong, and what is reported. `keys:` is added below it, where a good key belongs.
    struct Case: CustomTestStringConvertible, Sendable {
        var text: String
        var faults: [String]
        var hasKey = true

        init(_ text: String, _ faults: String..., hasKey: Bool = true) {
            self.text = text
            self.faults = faults
            self.hasKey = hasKey
        }

        var testDescription: String { text.replacing("\n", with: "⏎") }
    }

    /// Two interfaces, four processors; sockets can be bound to their addresses and to loopback.
    static let machine: Machine = {
        let interfaces = [
            NetworkInterface(name: "lo", addresses: []),
            NetworkInterface(name: "eth0", addresses: [SocketAddress(ipv4: 0xc000_0202, port: 0)]),
        ]
        let own = interfaces.flatMap(\.addresses)
        return Machine(
            processors: 4, interfaces: interfaces,
            refusal: { own.contains($0) || $0.isLoopback ? nil : "Cannot assign requested address" }, now: 1_790_000_000
        )
    }()

    static let key = "\nkeys: {app: 0123456789abcdef0123456789abcdef}\n"

    /// What loading the text as a file called m.yaml reports.
    static func load(
        _ text: String, environment: [String: String] = [:], development: Bool = false, on machine: Machine? = machine
    ) throws -> (configuration: Configuration?, warnings: [String], faults: [String]) {
        let folder = URL(filePath: NSTemporaryDirectory()).appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "m.yaml").path
        try Data(text.utf8).write(to: URL(filePath: file))
        func texts(_ faults: [ConfigurationFault]) -> [String] {
            faults.map { $0.description.replacing(folder.path + "/", with: "") }
        }
        do throws(ConfigurationError) {
            let configuration = try Configuration.load(
                file: file, environment: environment, development: development, on: machine)
            return (configuration, texts(configuration.warnings), [])
        } catch {
            return (nil, [], texts(error.faults))
        }
    }

    private func expect(_ row: Case) throws {
        let faults = try Self.load(row.hasKey ? row.text + Self.key : row.text).faults
        #expect(faults == row.faults)
    }

    @Test(
        "An unknown setting is reported with the nearest name",
        arguments: [
            Case("http:\n  prot: 1", "m.yaml:2: there is no setting 'http.prot'; did you mean 'http.port'?"),
            Case("htp:\n  port: 1", "m.yaml:1: there is no setting 'htp'; did you mean 'http'?"),
            Case("port: 1", "m.yaml:1: there is no setting 'port'; did you mean 'http.port'?"),
            Case(
                "http:\n  udp-port: 1", "m.yaml:2: there is no setting 'http.udp-port'; did you mean 'media.udp_port'?"),
            Case(
                "http:\n  tls:\n    cert: a",
                "m.yaml:3: there is no setting 'http.tls.cert'; did you mean 'http.tls.certificate'?"),
            Case("key: {app: s}", "m.yaml:1: there is no setting 'key'; did you mean 'keys'?"),
            Case("colour: red", "m.yaml:1: there is no setting 'colour'; 'martlet help settings' lists them"),
        ])
    func unknownNames(row: Case) throws { try expect(row) }

    @Test(
        "A section with a value, and a setting without one, are reported as such",
        arguments: [
            Case("http: 7880", "m.yaml:1: http: is a section and takes no value; did you mean 'http.port: 7880'?"),
            Case("log: debug", "m.yaml:1: log: is a section and takes no value; did you mean 'log.level: debug'?"),
            Case(
                "sessions: soon",
                "m.yaml:1: sessions: is a section and takes no value; write its settings (keep_alive, resume_window, drain, …) "
                    + "below it, indented"),
            Case(
                "media: [a]",
                "m.yaml:1: media: is a section and takes no value; write its settings (bind, udp_port, tcp, …) below it, indented"
            ),
            Case("http:\n  port:\n    a: 1", "m.yaml:3: http.port: is a section; expected one value: 0 to 65535"),
            Case("http:\n  port: [1, 2]", "m.yaml:2: http.port: is a list; expected one value: 0 to 65535"),
            Case("http:\n  port:\n", "m.yaml:2: http.port: has no value; expected 0 to 65535"),
            Case("http.port: 1\nhttp:\n  port: 2", "m.yaml:3: http.port: duplicate setting; the first is in line 1"),
        ])
    func shapes(row: Case) throws { try expect(row) }

    @Test(
        "An invalid value is reported with what is expected",
        arguments: [
            Case("http:\n  port: 70000", "m.yaml:2: http.port: '70000' is not valid; expected 0 to 65535"),
            Case(
                "\nmedia:\n  bind: here", "m.yaml:3: media.bind: 'here' is not valid; expected an IPv4 or IPv6 address"),
            Case(
                "media:\n  networks:\n    - 10.0.0.0/8\n    - 10.0.0.0/33",
                "m.yaml:4: media.networks: '10.0.0.0/33' is not valid; expected networks such as 10.0.0.0/8 or 2001:db8::/32"
            ),
            Case("insecure: maybe", "m.yaml:1: insecure: 'maybe' is not valid; expected true or false"),
            Case(
                "rooms:\n  video_codecs: [h264, opus]",
                "m.yaml:2: rooms.video_codecs: 'opus' is not valid; expected vp8, vp9, h264, av1"),
            Case(
                "log: {level: loud}", "m.yaml:1: log.level: 'loud' is not valid; expected debug, info, warning, error"),
            Case(
                "http:\n  allowed_origins: [app.example.org]",
                "m.yaml:2: http.allowed_origins: 'app.example.org' is not an origin; did you mean 'https://app.example.org'?"
            ),
            Case(
                "http:\n  allowed_origins:\n    - https://a.example\n    - https://B.example:443/",
                "m.yaml:4: http.allowed_origins: 'https://B.example:443/' is not what browsers send; write 'https://b.example'"
            ),
            Case(
                "http:\n  allowed_origins: ['https://a.example/page']",
                "m.yaml:2: http.allowed_origins: 'https://a.example/page' is not an origin; expected \(WebOrigin.form)"),
        ])
    func values(row: Case) throws { try expect(row) }

    @Test(
        "ICE servers that browsers reject are refused",
        arguments: [
            Case(
                "ice_servers: [\"http://b\"]",
                "m.yaml:1: ice_servers: 'http://b' is not the URL of an ICE server, which begins with stun:, stuns:, turn: or turns:"
            ),
            Case(
                "ice_servers:\n  - stun:a\n  - turn:t.example",
                "m.yaml:3: ice_servers: 'turn:t.example' needs 'username' and 'credential', without which browsers refuse to connect; "
                    + "write {urls: \"turn:t.example\", username: NAME, credential: SECRET}, or a 'secret' that the server shares"
            ),
            Case(
                "ice_servers:\n  - urls: TURNS:t.example\n    username: u",
                "m.yaml:2: ice_servers: 'TURNS:t.example' needs 'username' and 'credential', without which browsers refuse to connect; "
                    + "write {urls: \"TURNS:t.example\", username: NAME, credential: SECRET}, or a 'secret' that the server shares"
            ),
            Case(
                "ice_servers:\n  - urls: turn:t.example\n    username: u\n    password: p",
                "m.yaml:4: ice_servers: an ICE server has no 'password'; it may have urls, username, credential, secret, keys, rooms, origins"
            ),
            Case(
                "ice_servers:\n  - url: stun:a",
                "m.yaml:2: ice_servers: an ICE server has no 'url'; did you mean 'urls'?"),
            Case("ice_servers:\n  - username: u", "m.yaml:2: ice_servers: an ICE server needs 'urls'"),
            Case(
                "ice_servers: [\"stun://s.example:3478\"]",
                "m.yaml:1: ice_servers: 'stun://s.example:3478' must not have slashes; write stun:s.example:3478"),
            Case(
                "ice_servers: [\"stun:s.example?transport=udp\"]",
                "m.yaml:1: ice_servers: 'stun:s.example?transport=udp' has a query, which only turn: and turns: may have"
            ),
            Case(
                "ice_servers: [\"stun:s.example:99999\"]",
                "m.yaml:1: ice_servers: 'stun:s.example:99999' has no valid host or port; "
                    + "expected stun:HOST or stun:HOST:PORT"),
            Case(
                "ice_servers: [\"stun:\"]",
                "m.yaml:1: ice_servers: 'stun:' has no valid host or port; expected stun:HOST or stun:HOST:PORT"
            ),
        ])
    func iceServers(row: Case) throws { try expect(row) }

    @Test(
        "Text that is no YAML map is reported with its line",
        arguments: [
            Case("http:\n\tport: 1", "m.yaml:2: the line is indented with a tab; YAML is indented with spaces"),
            Case(
                "http:\n  port: 1\n\tbind: ::",
                "m.yaml:3: the line is indented with a tab; YAML is indented with spaces"),
            Case(
                "http: {port: 1}\n---\nmedia: {workers: 1}",
                "m.yaml:2: a second document begins here, but a configuration has one; remove the line '---'"),
            Case("http: {port: 1}\nlog: {}\nhttp: {port: 2}", "m.yaml:3: duplicate key 'http'; the first is in line 1"),
            Case(
                "http:\n  port: 1\n bind: 2",
                "m.yaml:3: not YAML: did not find expected key while parsing a block mapping that begins in line 1"),
            Case(
                "- a\n- b", "m.yaml:1: the file must be a map of settings, such as 'http: {port: 7880}'", hasKey: false),
            Case("a: &x 1\nb: *x", "m.yaml:2: aliases are not supported; write the value out"),
            Case("log:\n  level: a\u{7}b", "m.yaml:2: not YAML: control characters are not allowed"),
        ])
    func texts(row: Case) throws { try expect(row) }

    @Test("A file that is not UTF-8 is reported with the line")
    func encoding() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: file) }
        try Data([0x61, 0x3a, 0x0a, 0x62, 0x3a, 0xff]).write(to: file)
        let error = #expect(throws: ConfigurationError.self) {
            _ = try Configuration.load(file: file.path, environment: [:], development: false, on: nil)
        }
        #expect(error?.faults.map(\.description) == ["\(file.path):2: not UTF-8; save the file in this encoding"])
    }

    @Test(
        "Invalid keys are reported, and never their secrets",
        arguments: [
            Case(
                "keys:\n  my app: 0123456789abcdef0123456789abcdef",
                "m.yaml:2: keys.my app: the name of a key must be printable ASCII without spaces, commas and colons",
                hasKey: false),
            Case(
                "http: {port: 1}\nkeys:\n  app: short",
                "m.yaml:3: keys.app: the secret has 5 bytes; HS256 needs 32: 'openssl rand -hex 32' generates one",
                hasKey: false),
            Case("keys:\n  app: [a, b]", "m.yaml:2: keys.app: expected one value, the secret", hasKey: false),
            Case(
                "keys:\n  app:", "m.yaml:2: keys.app: has no secret; 'openssl rand -hex 32' generates one",
                hasKey: false),
            Case(
                "keys: {app:0123456789abcdef0123456789abcdef}",
                "m.yaml:1: keys: a key has no secret; write 'NAME: SECRET' with a space after the colon",
                hasKey: false),
            Case(
                "keys: 0123456789abcdef0123456789abcdef",
                "m.yaml:1: keys: is a section and takes no value; write 'NAME: SECRET' below it, indented",
                hasKey: false),
            Case("", Configuration.noKey.description, hasKey: false),
            Case(
                "http:\n  prot: 1", "m.yaml:2: there is no setting 'http.prot'; did you mean 'http.port'?",
                hasKey: false),
        ])
    func keys(row: Case) throws { try expect(row) }

    @Test(
        "Invalid and conflicting ports are reported",
        arguments: [
            Case(
                "media:\n  udp_port: 65535\n  workers: 8",
                "m.yaml:2: media.udp_port: 8 workers need the ports 65535 to 65542, but the last port is 65535; "
                    + "start at 65528 or lower"),
            Case(
                "media:\n  workers: 8\n  announced_addresses: ['192.0.2.7:65528', '[2001:db8::7]:65529']",
                "m.yaml:3: media.announced_addresses: 8 workers need the ports 65529 to 65536 at 2001:db8::7, "
                    + "but the last port is 65535; start at 65528 or lower"),
            Case(
                "media: {udp_port: 65533}",
                "m.yaml:1: media.udp_port: 4 workers (one per core) need the ports 65533 to 65536, but the last port is 65535; "
                    + "start at 65532 or lower"),
            Case(
                "http:\n  port: 7881", "m.yaml:2: http.port: port 7881 is also that of private.port; choose another one"
            ),
            Case(
                "http:\n  port: 80\nprivate:\n  port: 80",
                "m.yaml:4: private.port: port 80 is also that of http.port; choose another one"),
            Case(
                "http:\n  bind: '::'\nprivate:\n  port: 7880",
                "m.yaml:4: private.port: port 7880 is also that of http.port; choose another one"),
            // Media takes TCP, too, on all addresses and on one of them.
            Case(
                "media: {udp_port: 7880, workers: 2}",
                "m.yaml:1: media.udp_port: port 7880 is also that of http.port; choose another one, or set media.tcp to false",
                "m.yaml:1: media.udp_port: port 7881 is also that of private.port; choose another one, or set media.tcp to false"
            ),
            Case(
                "media:\n  udp_port: 7879\n  bind: 127.0.0.1\n  workers: 2",
                "m.yaml:2: media.udp_port: port 7880 is also that of http.port; choose another one, or set media.tcp to false"
            ),
            Case(
                "http: {port: 7903}",
                "m.yaml:1: http.port: port 7903 is also that of a media thread, which takes TCP there, too; choose another one, "
                    + "or set media.tcp to false"),
            Case(
                "http:\n  port: 7915\nmedia:\n  workers: 16",
                "m.yaml:4: media.workers: port 7915 is also that of http.port; choose another one, or set media.tcp to false"
            ),
            Case(
                "http: {port: 443}\nmedia:\n  tcp_port: 443",
                "m.yaml:3: media.tcp_port: port 443 is also that of http.port; choose another one"),
            Case(
                "media:\n  tcp_port: 7902",
                "m.yaml:2: media.tcp_port: port 7902 is also that of a media thread, which takes TCP there, too; choose another one, "
                    + "or set media.tcp to false"),
        ])
    func ports(row: Case) throws { try expect(row) }

    @Test(
        "Addresses and interfaces that the machine does not have are reported with those that it has",
        arguments: [
            Case(
                "media:\n  interfaces: [eth1]",
                "m.yaml:2: media.interfaces: there is no interface 'eth1' that is up; this machine has lo, eth0; did you mean 'eth0'?"
            ),
            Case(
                "media:\n  interfaces: [wg*]",
                "m.yaml:2: media.interfaces: no address of this machine matches, so clients could not reach the media ports; it has "
                    + "192.0.2.2 on eth0"),
            Case(
                "media:\n  networks: [10.0.0.0/8]",
                "m.yaml:2: media.networks: no address of this machine matches, so clients could not reach the media ports; it has "
                    + "192.0.2.2 on eth0"),
            Case(
                "media:\n  bind: 198.51.100.1",
                "m.yaml:2: media.bind: cannot listen on 198.51.100.1: Cannot assign requested address; this machine has 192.0.2.2"
            ),
            Case(
                "http:\n  bind: 198.51.100.1",
                "m.yaml:2: http.bind: cannot listen on 198.51.100.1: Cannot assign requested address; this machine has 192.0.2.2"
            ),
            Case(
                "media:\n  bind: 0.0.0.0",
                "m.yaml:2: media.bind: 0.0.0.0 would be advertised to clients; remove media.bind to use all addresses"
            ),
            Case(
                "media:\n  announced_addresses: [192.0.2.9, '::', 224.0.0.1]",
                "m.yaml:2: media.announced_addresses: clients cannot send to ::; name an address of the server",
                "m.yaml:2: media.announced_addresses: clients cannot send to 224.0.0.1; name an address of the server"
            ),
        ])
    func addresses(row: Case) throws { try expect(row) }

    @Test(
        "Unusual but valid values are accepted",
        arguments: [
            "", "http:\nmedia: ~\nkeys:", "media: {udp_port: 65528, workers: 8}", "media: {udp_port: 0, workers: 256}",
            // TCP and UDP ports have nothing to do with each other, nor have two addresses.
            "media: {udp_port: 7880, workers: 2, tcp: false}", "http: {bind: 192.0.2.2, port: 7881}",
            "http: {bind: 127.0.0.1}\nmedia: {bind: 192.0.2.2, udp_port: 7880, tcp_port: 7881, workers: 1}",
            "http: {port: 7904}\nmedia: {tcp_port: 7899}",
            "http: {port: 0}\nprivate: {port: 0}",
            "media: {interfaces: [eth0, wg*]}", "media: {bind: 0.0.0.0, announced_addresses: [203.0.113.9]}",
            "http: {allowed_origins: ['https://a.example:8443', 'capacitor://localhost', 'http://[::1]:3000', '*']}",
            "ice_servers: [\"stun:s.example\", 'stuns:[2001:db8::1]:5349']", "ice_servers:",
            "rooms: {default: \"7\"}", "---\nlog: {level: debug}\n",
        ])
    func good(text: String) throws {
        let text = text.hasSuffix("keys:") ? text + String(Self.key.dropFirst("\nkeys:".count)) : text + Self.key
        let faults = try Self.load(text).faults
        #expect(faults == [])
    }

    @Test("Faults are listed in the order of the file, however they were found")
    func order() throws {
        let faults = try Self.load("media:\n  udp_port: 65535\nhttp:\n  prot: 1\nkeys:\n  app: short\n").faults
        #expect(faults.map { String($0.prefix(8)) } == ["m.yaml:2", "m.yaml:4", "m.yaml:6"])
    }

    @Test("A file that cannot be read is reported with the reason")
    func unreadable() {
        for (file, reason) in [
            ("/", "/: is a directory; expected a file"),
            ("/no/m.yaml", "/no/m.yaml: cannot be read: No such file or directory"),
        ] {
            let error = #expect(throws: ConfigurationError.self) {
                _ = try Configuration.load(file: file, environment: [:], development: false, on: nil)
            }
            #expect(error?.faults.map(\.description) == [reason])
        }
    }
}
