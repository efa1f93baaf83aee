import EdgeSupport
import Foundation
import Logging
import MediaWorkers
import ObjectStorage
import Primitives
import RoomService
import Testing

@testable import martlet

@Suite("Reload and show")
struct ReloadTests {
    private func configuration(_ text: String, environment: [String: String] = [:]) throws -> Configuration {
        let loaded = try ConfigurationFaultTests.load(text, environment: environment)
        return try #require(loaded.configuration, "\(loaded.faults)")
    }

    private static let secret = String(repeating: "k", count: 32)

    @Test("Every path that a reload changes is a setting")
    func paths() {
        #expect(Setting.reloadable.subtracting(Setting.all.map(\.path)) == [])
    }

    @Test("A reload changes what may change, and names with its line what needs a restart")
    func merge() throws {
        let current = try configuration(
            "log: {level: info}\nmedia: {udp_port: 7900}\nkeys: {a: \(Self.secret), b: \(Self.secret)}")
        let fresh = try configuration(
            "log: {level: debug}\nadmission: {max_cpu: 50}\nmedia:\n  udp_port: 8900\n"
                + "rooms: {max_participants: 7}\nkeys: {b: \(Self.secret)0, c: \(Self.secret)}")
        let reload = Reload(current, from: fresh)
        #expect(
            reload.changed
                == ["admission.max_cpu", "rooms.max_participants", "log.level", "keys.a", "keys.b", "keys.c"])
        #expect(
            reload.needsRestart.map(\.description).map { String($0.drop { $0 != ":" }) }
                == [":4: media.udp_port: has changed and is read at start only; restart the server for it"])
        let next = reload.configuration
        #expect(next.log.level == .debug && next.admission.maxCPU == 50 && next.rooms.maxParticipantsPerRoom == 7)
        #expect(next.media.udpBasePort == 7_900)
        #expect(next.keys == ["b": Self.secret + "0", "c": Self.secret])
        #expect(reload.outdatedKeys == ["a", "b"])
        // Once more, nothing is new but what still needs the restart.
        let again = Reload(next, from: fresh)
        #expect(again.changed == [] && again.needsRestart.count == 1 && again.outdatedKeys == [])
    }

    @Test(
        "ICE servers, private webhook receivers and limits of calls and checks change in a reload; the longest message and captures do not"
    )
    func reach() throws {
        let key = "keys: {a: \(Self.secret)}"
        let fresh = try configuration(
            "ice_servers: [{urls: 'turn:t.example', secret: thisisnobodysbusiness}]\nice_credentials_lifetime: 60\n"
                + "webhooks: {allow_private: true}\nhttp: {api_calls_per_second: 7}\n"
                + "rooms: {max_checks: 3, max_message_bytes: 100000, allow_captures: true}\n" + key)
        let reload = Reload(try configuration(key), from: fresh)
        #expect(
            reload.changed
                == [
                    "http.api_calls_per_second", "ice_servers", "ice_credentials_lifetime", "rooms.max_checks",
                    "webhooks.allow_private",
                ])
        #expect(reload.needsRestart.map(\.path) == ["rooms.allow_captures", "rooms.max_message_bytes"])
        let next = reload.configuration
        #expect(
            next.iceServers.map(\.secret) == ["thisisnobodysbusiness"] && next.iceCredentialsLifetime == .seconds(60))
        #expect(next.webhooksAllowPrivate && next.apiCallsPerSecond == 7 && next.rooms.maxChecks == 3)
        #expect(next.rooms.maxMessageBytes == RoomServiceConfiguration().maxMessageBytes && !next.rooms.allowsCaptures)
    }

    @Test(
        "The storage's keys change in a reload, but not to those of another storage: they need a restart with it",
        arguments: [
            ("http://s:9", "b", true), ("http://t:9", "b", false), ("http://s:9", "c", false),
        ])
    func storageKeys(endpoint: String, bucket: String, isKept: Bool) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func configured(_ name: String, _ endpoint: String, _ bucket: String) throws -> Configuration {
            let file = folder.appending(path: name)
            try Data("access-\(name)\nsecret\n".utf8).write(to: file)
            return try configuration(
                "recording: {directory: /var/r, upload_endpoint: '\(endpoint)', upload_bucket: \(bucket), "
                    + "upload_credentials: \(file.path)}\nkeys: {a: \(Self.secret)}")
        }
        let reload = Reload(try configured("old", "http://s:9", "b"), from: try configured("new", endpoint, bucket))
        #expect(reload.keepsStorage == isKept)
        #expect(reload.changed.contains("recording.upload_credentials") == isKept)
        #expect(reload.needsRestart.contains { $0.path == "recording.upload_credentials" } != isKept)
        let storage = try reload.configuration.recording.upload.storage()
        #expect(storage?.accessKey == (isKept ? "access-new" : "access-old"))
    }

    @Test("A setting that was removed from the file has its default again")
    func removed() throws {
        let key = "\nkeys: {a: \(Self.secret)}"
        let reload = Reload(try configuration("admission: {max_cpu: 50}" + key), from: try configuration(key))
        #expect(reload.changed == ["admission.max_cpu"] && reload.configuration.admission.maxCPU == 85)
        #expect(reload.configuration.origins["admission.max_cpu"] == nil)
    }

    @Test("config show: every setting, its value, where it is from; no secret")
    func shown() throws {
        let text =
            "http: {port: 7000}\nice_servers: [{urls: 'turn:t.example', secret: thisisnobodysbusiness}]\n"
            + "keys: {a: \(Self.secret)}\n"
        let lines = try configuration(text, environment: ["MARTLET_LOG_LEVEL": "debug"]).shown
        #expect(lines.count == Setting.all.count + 1)
        func line(_ path: String) -> String? {
            lines.first { $0.hasPrefix(path + ": ") }?.split(separator: " ").joined(separator: " ")
        }
        #expect(
            line("http.port")?.hasSuffix("m.yaml:1") == true
                && line("http.port")?.hasPrefix("http.port: 7000 #") == true)
        #expect(line("log.level") == "log.level: debug # MARTLET_LOG_LEVEL")
        #expect(line("private.port") == "private.port: 7881 # default")
        #expect(line("keys.a")?.hasPrefix("keys.a: *** #") == true)
        #expect(line("ice_servers")?.hasPrefix("ice_servers: [{urls: [turn:t.example], secret: ***}] #") == true)
        #expect(!lines.joined().contains("thisisnobodysbusiness") && !lines.joined().contains(Self.secret))
        let development = try #require(try ConfigurationFaultTests.load("", development: true, on: nil).configuration)
        #expect(development.shown.contains { $0.hasPrefix("keys.devkey: ***") && $0.hasSuffix("# --dev") })
    }
}
