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
    private func take(_ text: String) throws -> (Configuration, [String]) {
        var configuration = Configuration()
        var faults: [String] = []
        configuration.take(try YAMLDocument(parsing: text).entries, from: "m.yaml", &faults)
        return (configuration, faults)
    }

    @Test("A file's values arrive where they belong")
    func values() throws {
        let (configuration, faults) = try take(
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
        #expect(configuration.faults.isEmpty)
    }

    @Test(
        "What is wrong is told with its line",
        arguments: [
            ("http:\n  prot: 1", "m.yaml:2: there is no setting 'http.prot'; 'martlet help settings' lists them"),
            ("http:\n  port: 70000", "m.yaml:2: http.port: '70000' is not 0 to 65535"),
            ("\nmedia:\n  bind: here", "m.yaml:3: media.bind: 'here' is not an IPv4 or IPv6 address"),
            (
                "media: {networks: [10.0.0.0/33]}",
                "m.yaml:1: media.networks: '10.0.0.0/33' is not one of: networks as 10.0.0.0/8 or 2001:db8::/32"
            ),
            (
                "insecure: maybe",
                "m.yaml:1: insecure: 'maybe' is not true or false"
            ),
            (
                "ice_servers: [\"stun:a\", \"http://b\"]",
                "m.yaml:1: ice_servers: 'http://b' is not one of: stun:, turn: or turns: addresses"
            ),
            (
                "rooms:\n  video_codecs: [h264, opus]",
                "m.yaml:2: rooms.video_codecs: 'opus' is not one of: vp8, vp9, h264, av1"
            ),
            ("log: {level: loud}", "m.yaml:1: log.level: 'loud' is not debug, info, warning, error"),
            ("http:\n  port: [1, 2]", "m.yaml:2: http.port: wants one value, not a list"),
        ])
    func faults(text: String, fault: String) throws {
        #expect(try take(text).1 == [fault])
    }

    @Test(
        "A text that is no map of settings is refused with its line",
        arguments: [
            ("- a\n- b", 1), ("http: {port: 1", 2), ("a: 1\na: 2", 2), ("a: &x 1\nb: *x", 2), ("a:\n  - [1]", 2),
        ])
    func notAMap(text: String, line: Int) {
        let failure = #expect(throws: YAMLDocument.Failure.self) { _ = try YAMLDocument(parsing: text) }
        #expect(failure?.line == line)
    }

    @Test("The environment wins over the file")
    func environment() throws {
        var (configuration, faults) = try take("http: {port: 1}")
        configuration.take(
            ["MARTLET_HTTP_PORT": "2", "MARTLET_KEYS": "a:b, c:d", "MARTLET_MEDIA_ANNOUNCED_ADDRESSES": "192.0.2.7"],
            &faults)
        #expect(faults.isEmpty && configuration.http.port == 2)
        #expect(configuration.keys == ["a": "b", "c": "d"])
        #expect(configuration.media.advertisedAddresses.map(\.host) == ["192.0.2.7"])
    }

    @Test("C16: without TLS, a proxy or an explicit word only this machine is served")
    func loopbackOnly() {
        var configuration = Configuration()
        #expect(!configuration.servesOtherMachines && configuration.publicHTTP.servesLoopbackOnly)
        configuration.trustedProxy = true
        #expect(configuration.servesOtherMachines && !configuration.publicHTTP.servesLoopbackOnly)
        configuration.becomeDevelopment()
        #expect(configuration.publicHTTP.servesLoopbackOnly, "development never serves others")
        #expect(configuration.media.engine.admittedHosts.contains { $0.host == "127.0.0.1" })
    }

    @Test(
        "1.7: --dev listens where no other machine is; elsewhere only when told so, and then it serves others",
        arguments: [
            ("127.0.0.1", false, true), ("::1", false, true), ("127.0.0.9", true, true), ("0.0.0.0", false, false),
            ("::", false, false), ("192.0.2.7", false, false), ("0.0.0.0", true, true),
        ])
    func developmentAddress(host: String, insecure: Bool, starts: Bool) throws {
        var configuration = Configuration.development
        var faults: [String] = []
        configuration.take(try YAMLDocument(parsing: "http: {bind: \"\(host)\"}").entries, from: "m.yaml", &faults)
        configuration.insecure = insecure
        configuration.becomeDevelopment()
        #expect(configuration.http.host == host && faults.isEmpty)
        #expect(configuration.faults.contains { $0.hasPrefix("http.bind: --dev") } == !starts)
        let isPublic = insecure && host == "0.0.0.0"
        #expect(configuration.servesOtherMachines == isPublic)
        #expect(configuration.media.engine.admittedHosts.isEmpty == isPublic)
    }

    @Test("A server without a key, or with a weak one, does not start")
    func keys() {
        var configuration = Configuration()
        #expect(configuration.faults.contains { $0.hasPrefix("keys: no API key") })
        configuration.keys["app"] = "short"
        #expect(configuration.faults.count == 1)
        #expect(configuration.faults[0].hasPrefix("keys.app: the secret has 5 bytes; HS256 needs 32"))
        #expect(Configuration.development.faults.isEmpty)
    }

    @Test("TLS files that cannot be read, and one without the other, are told")
    func tlsFiles() {
        var configuration = Configuration.development
        configuration.tlsCertificatePath = "/nowhere/certificate.pem"
        #expect(
            configuration.faults == [
                "http.tls: certificate and key go together",
                "http.tls.certificate: '/nowhere/certificate.pem' cannot be read: No such file or directory",
            ])
    }

    @Test("What a setting shows is what it takes")
    func roundTrip() throws {
        let standard = Configuration()
        for setting in Setting.all {
            let text = setting.show(standard)
            guard !text.isEmpty else { continue }
            var copy = standard
            try setting.take(&copy, text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) })
            #expect(setting.show(copy) == text, "\(setting.path)")
        }
    }

    @Test("The table in the README is what the program says of itself")
    func readme() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        let table = Setting.rows.map {
            "| `\($0.path)` | \($0.standard.isEmpty ? "" : "`\($0.standard)`") | \($0.summary) |"
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

    @Test("Each setting has a path of its own")
    func uniqueSettings() {
        #expect(Set(Setting.all.map(\.path)).count == Setting.all.count)
        #expect(Setting.all.first { $0.path == "media.udp_port" }?.variable == "MARTLET_MEDIA_UDP_PORT")
    }

    @Test(
        "Announced addresses may have a port, an IPv6 address then brackets",
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
        "What is no address with a port is refused",
        arguments: [
            "", ":40000", "192.0.2.7:", "192.0.2.7:0", "192.0.2.7:65536", "[192.0.2.7]:1", "[2001:db8::7]", "a:1",
        ])
    func badAnnouncedPort(text: String) {
        #expect(SocketAddress(numericWithPort: text) == nil)
    }

    @Test("Announced ports that the workers would count beyond the last one are refused")
    func announcedPortsBeyond() {
        var configuration = Configuration()
        configuration.keys = ["app": "0123456789abcdef0123456789abcdef"]
        configuration.media.workers = 8
        configuration.media.advertisedAddresses = [SocketAddress(ipv4: 0xc000_0207, port: 65_528)]
        #expect(configuration.faults.isEmpty)
        configuration.media.advertisedAddresses = [SocketAddress(ipv4: 0xc000_0207, port: 65_529)]
        #expect(configuration.faults.map { $0.hasPrefix("media.announced_addresses: 192.0.2.7:65529: ") } == [true])
    }
}
