import EdgeSupport
import Foundation
import Primitives
import RoomService
import Rooms
import TestSupport
import Testing

@Suite("Traces of joins as OTLP shows them")
struct TraceModelTests {
    private func spans(_ trace: JoinTrace) throws -> [[String: Any]] {
        var random = RandomSource(seed: 1)
        let body = JSONCoding.encode(TraceModel([trace], server: "martlet/1.2", using: &random))
        let document = try #require(try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
        let resource = try #require((document["resourceSpans"] as? [[String: Any]])?.first)
        let attributes = try #require((resource["resource"] as? [String: Any])?["attributes"] as? [[String: Any]])
        #expect(attributes.map { $0["key"] as? String } == ["service.name", "service.version"])
        return try #require((resource["scopeSpans"] as? [[String: Any]])?.first?["spans"] as? [[String: Any]])
    }

    private func times(_ spans: [[String: Any]]) -> [String: [Int64]] {
        var times: [String: [Int64]] = [:]
        for span in spans {
            let ends = ["startTimeUnixNano", "endTimeUnixNano"].compactMap {
                (span[$0] as? String).flatMap { Int64($0) }
            }
            times[span["name"] as? String ?? ""] = ends
        }
        return times
    }

    @Test("A join goes on with its caller's trace; its steps follow each other, the token's before the join")
    func joined() throws {
        let parent = try #require(
            TraceContext(traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
        let trace = JoinTrace(
            room: "R", participant: "PA_1", profile: .full, client: "agent/1", joinedAt: 1_000,
            origin: JoinOrigin(receivedAt: 990, verification: .microseconds(40), trace: parent),
            steps: [.offer: 20, .ice: 50, .dtls: 70, .received: 80, .receivedKeyframe: 95, .sent: 75, .sentVideo: 200],
            outcome: .joined)
        let spans = try spans(trace)
        #expect(Set(spans.map { $0["traceId"] as? String }) == ["4bf92f3577b34da6a3ce929d0e0e4736"])
        let root = spans[0]
        #expect(root["name"] as? String == "join" && root["parentSpanId"] as? String == "00f067aa0ba902b7")
        #expect(root["kind"] as? Int == 2 && root["status"] == nil)
        #expect(spans.dropFirst().allSatisfy { $0["parentSpanId"] as? String == root["spanId"] as? String })
        #expect(Set(spans.map { $0["spanId"] as? String }).count == spans.count)
        let expected: [String: [Int64]] = [
            "join": [990_000_000, 1_200_000_000], "token": [990_000_000, 990_040_000],
            "offer": [1_000_000_000, 1_020_000_000], "ICE": [1_020_000_000, 1_050_000_000],
            "DTLS": [1_050_000_000, 1_070_000_000], "first packet received": [1_070_000_000, 1_080_000_000],
            "first keyframe received": [1_080_000_000, 1_095_000_000],
            "first packet sent": [1_070_000_000, 1_075_000_000],
            "first keyframe sent": [1_075_000_000, 1_200_000_000],
        ]
        #expect(times(spans) == expected)
        #expect("\(root)".contains("PA_1") && "\(root)".contains("agent/1"))
    }

    @Test(
        "A refused join is an error with its code, in a trace of its own; a long wait for the client is not the server's"
    )
    func refused() throws {
        let spans = try spans(
            JoinTrace(
                room: "R", participant: nil, profile: .publishOnly, joinedAt: 60_000,
                origin: JoinOrigin(receivedAt: 1_000, verification: .microseconds(40)), outcome: .refused(.roomFull)))
        #expect(spans.count == 1 && spans[0]["parentSpanId"] == nil)
        #expect((spans[0]["traceId"] as? String)?.count == 32)
        #expect(times(spans)["join"] == [60_000_000_000, 60_000_000_000])
        #expect((spans[0]["status"] as? [String: Any])?["message"] as? String == "room_full")
    }
}
