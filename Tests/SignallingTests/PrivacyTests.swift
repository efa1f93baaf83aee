import EdgeTestSupport
import TestSupport
import Testing

@testable import Signalling

@Suite("What members learn of each other")
struct PrivacyTests {
    @Test(
        "B22: a room is routed unless asked otherwise, and nobody is sent another member's address or ICE credentials")
    func addresses() async throws {
        let house = TestRooms()
        var bob = try await Client("bob", to: house)
        let joined = try #require(await bob.join())
        #expect(joined.object("room")?["topology"] as? String == "routed")
        var ada = try await Client("ada", to: house)
        await ada.join()
        var section = ClientDescriptions.Section.audio("0")
        section.extra = ["a=candidate:1 1 udp 2122260223 203.0.113.77 50123 typ host"]
        var description = ClientDescriptions(ufrag: "adasfragment")
        description.password = "adaspasswordadaspassword"
        #expect(await ada.offer("pub", description.offer([section]))?.type == "answer")
        let candidate = "candidate:2 1 udp 1686052607 198.51.100.99 50124 typ srflx raddr 203.0.113.77 rport 50123"
        #expect(await ada.ask("ice", "\"connection\":\"pub\",\"candidate\":\"\(candidate)\"")?.type == "ok")
        #expect(await ada.ask("metadata", "\"metadata\":\"the end\"")?.type == "ok")
        // Everything that bob is sent, his own offer and a snapshot among it.
        var heard = joined.text, offers = 0
        while let message = await bob.ears.next() {
            heard += message.text
            offers += message.type == "offer" ? 1 : 0
            if message.type == "participantUpdated", message.text.contains("the end") { break }
        }
        heard += try #require(await bob.ask("snapshot")).text
        #expect(offers == 1 && heard.contains("192.0.2.1"), "bob is sent the server's own addresses")
        for secret in ["203.0.113.77", "198.51.100.99", "adasfragment", "adaspassword", ClientDescriptions.fingerprint]
        {
            #expect(!heard.contains(secret), "\(secret)")
        }
    }
}
