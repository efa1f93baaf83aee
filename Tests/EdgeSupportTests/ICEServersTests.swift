import AccessTokens
import Testing

@testable import EdgeSupport

@Suite("ICE servers")
struct ICEServersTests {
    private static func claims(_ identity: String = "ada", key: String = "app", room: String? = nil) -> AccessClaims {
        AccessClaims(apiKey: key, identity: identity, expiresAt: .max, video: .join(room))
    }

    private static func entry(_ url: String, _ change: (inout ICEServers.Entry) -> Void = { _ in }) -> ICEServers.Entry
    {
        var entry = ICEServers.Entry(ICEServer(urls: [url]))
        change(&entry)
        return entry
    }

    @Test("C11: the password of a user name is what coturn computes of it")
    func password() {
        // printf '1790003600:ada' | openssl dgst -sha1 -hmac north-south-east-west -binary | base64
        #expect(
            ICEServers.password(of: "1790003600:ada", secret: "north-south-east-west") == "C/qj14xcfP/k86sUpVGSfiUEwgA="
        )
    }

    @Test("C11: credentials expire after their lifetime, differ by participant, and do not name it")
    func credentials() throws {
        let servers = ICEServers(
            [Self.entry("turn:t.example") { $0.secret = "north-south-east-west" }, Self.entry("stun:s.example")],
            lifetimeSeconds: 600, now: { 1_000 })
        let ada = servers.servers(for: Self.claims("ada"), room: "R", origin: nil)
        let bob = servers.servers(for: Self.claims("bob"), room: "R", origin: nil)
        let username = try #require(ada[0].username)
        #expect(username.hasPrefix("1600:") && username != bob[0].username && !username.contains("ada"))
        #expect(ada[0].credential == ICEServers.password(of: username, secret: "north-south-east-west"))
        #expect(ada[1] == ICEServer(urls: ["stun:s.example"]))
        #expect(servers.lifetimeSeconds(for: Self.claims(), room: nil, origin: nil) == 600)
        #expect(ICEServers([Self.entry("stun:s")]).lifetimeSeconds(for: Self.claims(), room: nil, origin: nil) == nil)
    }

    @Test(
        "D7: a server is announced to clients of its keys, rooms and origins only; the token's room counts before another"
    )
    func rules() {
        let servers = ICEServers([
            Self.entry("stun:all"), Self.entry("stun:key") { $0.keys = ["app"] },
            Self.entry("stun:room") { $0.rooms = ["hall", "class-*"] },
            Self.entry("stun:origin") { $0.origins = ["https://a.example"] },
        ])
        func announced(_ claims: AccessClaims, _ room: String? = nil, _ origin: String? = nil) -> [String] {
            servers.servers(for: claims, room: room, origin: origin).flatMap(\.urls).map { String($0.dropFirst(5)) }
        }
        #expect(announced(Self.claims(key: "other")) == ["all"])
        #expect(announced(Self.claims()) == ["all", "key"])
        #expect(announced(Self.claims(), "hall") == ["all", "key", "room"])
        #expect(announced(Self.claims(room: "class-7")) == ["all", "key", "room"])
        #expect(announced(Self.claims(room: "den"), "hall") == ["all", "key"])
        #expect(announced(Self.claims(), nil, "https://a.example") == ["all", "key", "origin"])
        #expect(announced(Self.claims(), nil, "https://b.example") == ["all", "key"])
    }

    @Test("A client that names no room gets the servers of the default room, into which it comes")
    func defaultRoom() {
        let hall = Self.entry("turn:hall") { $0.rooms = ["hall"] }
        let withSecret = Self.entry("turn:hall") { ($0.rooms, $0.secret) = (["hall"], "north-south-east-west") }
        for (room, named, isAnnounced) in [
            (nil, nil, true), (nil, "den", false), ("den", nil, false), ("hall", nil, true),
        ] as [(String?, String?, Bool)] {
            let settings = ICEServers.Settings([hall, withSecret], lifetimeSeconds: 60, defaultRoom: "hall")
            let servers = ICEServers(Live(settings), now: { 0 })
            let found = servers.servers(for: Self.claims(room: room), room: named, origin: nil)
            #expect(found.count == (isAnnounced ? 2 : 0))
            let lifetime = servers.lifetimeSeconds(for: Self.claims(room: room), room: named, origin: nil)
            #expect(lifetime == (isAnnounced ? 60 : nil))
        }
    }
}
