import AccessTokens
import MediaControl
import Primitives
import Rooms
import Testing

@testable import RoomService

@Suite("Stays that are over and wait for their connections")
struct DepartingStayTests {
    private func summary(_ room: String) -> StaySummary {
        let info = ParticipantInfo(
            sid: "PA_1", identity: "ada", name: "", metadata: "", profile: .full,
            permissions: Permissions(VideoGrant()), joinedAt: 0)
        return StaySummary(
            room: room, roomSID: "RM_\(room)", info: info, leftAt: 0, reason: .moved, tracks: [], bytesReceived: 0,
            bytesSent: 0)
    }

    @Test("I6: whoever leaves right after a move that ended its connections has a summary of its stay in each room")
    func leftAfterMove() {
        var departing = DepartingStays()
        for (peer, room) in [(PeerID(1), "A"), (PeerID(2), "B")] {
            let stay = EndedStay(summary(room), missing: [peer: CarriedBytes()])
            #expect(departing.add(stay, at: 0) == nil, "it waits for its connection")
        }
        let first = departing.finish(PeerID(1), EndedPeer(bytesReceived: 5, bytesSent: 7), at: 10)
        #expect(first?.room == "A" && first?.bytesReceived == 5)
        #expect(departing.removeOverdue(at: nil).map(\.room) == ["B"])
    }
}
