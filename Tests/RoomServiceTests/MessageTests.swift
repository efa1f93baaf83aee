import MediaControl
import Primitives
import Rooms
import TestSupport
import Testing

@testable import RoomService

@Suite("Messages on data channels")
struct MessageTests {
    let plane = FakePlane()

    /// A codec whose messages are text, reliable on every channel but "lossy"; anything else is malformed.
    private static let codec = MessageCodec(
        decode: { label, payload in
            guard payload.isText else { return nil }
            return RoomMessage(topic: "", content: .text("x"), isReliable: label != "lossy")
        }, encode: { _ in DataPayload(text: "y") })

    @Test(
        "The worker learns whom to slow down for a reliable message, and after each message that the next may come"
    )
    func backPressure() async throws {
        let service = RoomHost(media: plane, codecs: [DataProtocol.martlet.name: Self.codec])
        var peers: [PeerID] = []
        for name in ["ada", "bob"] {
            let member = try await service.join(request(name))
            _ = try await service.offer(
                member.session, connection: "pub", sdp: ClientDescriptions(ufrag: "user\(name)").dataOffer())
            let added = plane.consumeCommands().compactMap { if case .addPeer(let peer) = $0 { peer.id } else { nil } }
            let peer = try #require(added.first)
            for label in ["reliable", "lossy"] {
                await service.receive([.dataChannelOpened(peer, DataChannelTerms(label: label))])
            }
            peers.append(peer)
        }
        _ = plane.consumeCommands()
        let text = DataPayload(text: "hello"), malformed = DataPayload(isText: false, bytes: [1, 2, 3])
        await service.receive([
            .dataReceived(peers[0], label: "reliable", text), .dataReceived(peers[0], label: "lossy", text),
            .dataReceived(peers[0], label: "reliable", malformed),
        ])
        let answer = DataPayload(text: "y")
        func delivery(_ label: String, _ source: PeerID?) -> MediaCommand {
            .sendData(
                DataDelivery(
                    payload: answer, receivers: [DataReceiver(peer: peers[1], label: label)], source: source))
        }
        #expect(
            plane.consumeCommands() == [
                delivery("reliable", peers[0]), .releaseData(peers[0], cost: text.cost),
                delivery("lossy", nil), .releaseData(peers[0], cost: text.cost),
                .releaseData(peers[0], cost: malformed.cost),
            ])
    }
}
