import AccessTokens
import EdgeTestSupport
import HTTPServing
import MediaControl
import RoomService
import Rooms
import Testing

@testable import ControlAPI

@Suite("Control API: policy, presets, permissions and bans")
struct PolicyTests {
    private let api = TestAPI()

    private func tag(_ answer: Answer) throws -> String { try #require(answer.response.headers["ETag"]) }

    private func edit(
        _ method: HTTPMethod, _ target: String, _ body: String, ifMatch: String? = nil,
        type: String = "application/merge-patch+json"
    ) async throws -> Answer {
        var request = try request(
            method, target, token: TestTokens.token(nil, TestTokens.operatorGrant),
            type: method == .put ? "application/json" : type, body: body)
        request.headers["If-Match"] = ifMatch
        return Answer(response: await api.answer(request))
    }

    @Test(
        "I1, I2: the policy is shown with its tag, merged and replaced; what an edit removes falls back to the preset and the server's defaults"
    )
    func edits() async throws {
        #expect(
            try await api.ask(.put, "/v1/presets/small", #"{"maxParticipants":4,"audioOnly":true}"#).status == 201)
        let creation = #"{"name":"R","preset":"small","policy":{"maxPublishers":2}}"#
        #expect(try await api.ask(.post, "/v1/rooms", creation).status == 201)
        let shown = try await api.ask(.get, "/v1/rooms/R/policy")
        #expect(shown.members["maxParticipants"] as? Int == 4 && shown.members["maxPublishers"] as? Int == 2)
        let patched = try await edit(.patch, "/v1/rooms/R/policy", #"{"maxParticipants":9,"maxPublishers":null}"#)
        #expect(patched.status == 200 && patched.members["maxParticipants"] as? Int == 9)
        #expect(patched.members["maxPublishers"] == nil && patched.members["audioOnly"] as? Bool == true)
        #expect(try tag(patched) != tag(shown))
        let back = try await edit(.patch, "/v1/rooms/R/policy", #"{"maxParticipants":null}"#)
        #expect(back.members["maxParticipants"] as? Int == 4, "the preset's")
        let replaced = try await edit(.put, "/v1/rooms/R/policy", #"{"audioOnly":false}"#)
        #expect(replaced.members["audioOnly"] as? Bool == false && replaced.members["maxParticipants"] as? Int == 4)
        #expect(
            try await edit(.patch, "/v1/rooms/R/policy", #"{"shortage":"oversend","oversendBitrate":5}"#).status == 200)
        let conflict = try await edit(.patch, "/v1/rooms/R/policy", #"{"shortage":null}"#)
        #expect(
            conflict.status == 409 && conflict.members["code"] as? String == "conflict",
            "the patch is good, its outcome is not")
        // What is shown can be put back as it is.
        let same = try await edit(.put, "/v1/rooms/R/policy", String(decoding: replaced.response.body, as: UTF8.self))
        #expect(same.response.body == replaced.response.body)
    }

    @Test("I2: of two who edit the same revision one gets 412, and without If-Match both edits hold")
    func race() async throws {
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"R"}"#).status == 201)
        let tag = try tag(try await api.ask(.get, "/v1/rooms/R/policy"))
        let first = try await edit(.patch, "/v1/rooms/R/policy", #"{"maxParticipants":5}"#, ifMatch: tag)
        let second = try await edit(.patch, "/v1/rooms/R/policy", #"{"maxPublishers":3}"#, ifMatch: tag)
        #expect(first.status == 200 && second.status == 412 && second.code == "revision_mismatch")
        let put = try await edit(.put, "/v1/rooms/R/policy", "{}", ifMatch: tag)
        #expect(put.status == 412)
        let api = api
        try await withThrowingTaskGroup(of: Int.self) { group in
            for body in [#"{"maxPublishers":3}"#, #"{"maxVideoBitrate":100000}"#, #"{"audioOnly":true}"#] {
                group.addTask { try await api.ask(.patch, "/v1/rooms/R/policy", body).status }
            }
            for try await status in group { #expect(status == 200) }
        }
        let all = try await api.ask(.get, "/v1/rooms/R/policy")
        #expect(all.members["maxPublishers"] as? Int == 3 && all.members["maxVideoBitrate"] as? Int == 100_000)
        #expect(all.members["audioOnly"] as? Bool == true && all.members["maxParticipants"] as? Int == 5)
        // A room of the same name that comes later is another one.
        let last = try self.tag(all)
        #expect(try await api.ask(.delete, "/v1/rooms/R").status == 200)
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"R"}"#).status == 201)
        #expect(try await edit(.patch, "/v1/rooms/R/policy", "{}", ifMatch: last).status == 412)
    }

    @Test("Rules of recording are shown as they are set; demanding one is refused where nothing can be recorded")
    func recording() async throws {
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"R"}"#).status == 201)
        let body = #"{"recording":"manual","recordingSources":["camera","screen"],"recordingParticipants":["ada"]}"#
        let edited = try await edit(.patch, "/v1/rooms/R/policy", body)
        #expect(edited.members["recording"] as? String == "manual")
        #expect(edited.members["recordingSources"] as? [String] == ["camera", "screen"])
        #expect(edited.members["recordingParticipants"] as? [String] == ["ada"])
        let files =
            #"{"recordingFiles":"participant","recordingSegmentSeconds":600,"recordingSegmentMegabytes":2048,"recordingFileName":"{room}-{time}"}"#
        let named = try await edit(.patch, "/v1/rooms/R/policy", files)
        #expect(named.members["recordingFiles"] as? String == "participant")
        #expect(named.members["recordingSegmentSeconds"] as? Int == 600)
        #expect(named.members["recordingSegmentMegabytes"] as? Int == 2_048)
        #expect(named.members["recordingFileName"] as? String == "{room}-{time}")
        let none = try await edit(.patch, "/v1/rooms/R/policy", #"{"recordingFiles":null,"recordingFileName":null}"#)
        #expect(none.status == 200 && none.members["recordingFiles"] == nil && none.members["recordingFileName"] == nil)
        let demanded = try await edit(.patch, "/v1/rooms/R/policy", #"{"recording":"fromStart"}"#)
        #expect(demanded.code == "recording_disabled")
        let room = #"{"name":"S","policy":{"recording":"fromStart"}}"#
        #expect(try await api.ask(.post, "/v1/rooms", room).code == "recording_disabled")
        #expect(try await edit(.patch, "/v1/rooms/R/policy", #"{"recording":"always"}"#).status == 400)
    }

    @Test("I2: a dry run answers with whom the edit would concern and changes nothing")
    func dryRun() async throws {
        try await api.publisher("ada", in: "R")
        let before = try await api.ask(.get, "/v1/rooms/R/policy")
        let answer = try await edit(.patch, "/v1/rooms/R/policy?dryRun=true", #"{"audioOnly":true}"#)
        #expect(answer.status == 200 && answer.list("participants").map { $0["identity"] as? String } == ["ada"])
        #expect((answer.list("participants").first?["endedTracks"] as? [String])?.count == 1)
        #expect((answer.members["policy"] as? [String: Any])?["audioOnly"] as? Bool == true)
        let after = try await api.ask(.get, "/v1/rooms/R/policy")
        #expect(after.response.body == before.response.body)
        #expect(try tag(after) == tag(before))
        #expect(try await api.ask(.get, "/v1/rooms/R/tracks").list("tracks").count == 2)
        #expect(try await edit(.patch, "/v1/rooms/R/policy", #"{"audioOnly":true}"#).status == 200)
        #expect(try await api.ask(.get, "/v1/rooms/R/tracks").list("tracks").count == 1)
    }

    @Test(
        "A policy that is not well-formed is refused with the place, and nothing of it holds",
        arguments: [
            (#"{"maxParticipants":0}"#, "/maxParticipants"), (#"{"maxParticpants":null}"#, "/maxParticpants"),
            (#"{"publishSources":["camera","radio"]}"#, "/publishSources"),
            (#"{"duplicateIdentity":"both"}"#, "/duplicateIdentity"),
            (#"{"maxStaySeconds":0}"#, "/maxStaySeconds"),
            (#"{"maxDurationSeconds":99999999999}"#, "/maxDurationSeconds"),
            (#"{"allowSimulcast":"yes"}"#, "/allowSimulcast"), (#"{"recordingFiles":"all"}"#, "/recordingFiles"),
            (#"{"recordingSegmentSeconds":9}"#, "/recordingSegmentSeconds"),
            (#"{"recordingSegmentMegabytes":2049}"#, "/recordingSegmentMegabytes"),
            (#"{"recordingFileName":"../{room}"}"#, "/recordingFileName"),
            (#"{"recordingFileName":"{password}"}"#, "/recordingFileName"),
        ])
    func malformed(body: String, pointer: String) async throws {
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"R"}"#).status == 201)
        let before = try await api.ask(.get, "/v1/rooms/R/policy")
        for method in [HTTPMethod.put, .patch] {
            let answer = try await edit(method, "/v1/rooms/R/policy", body)
            #expect(answer.status == 400 && answer.members["pointer"] as? String == pointer)
        }
        #expect(try await api.ask(.get, "/v1/rooms/R/policy").response.body == before.response.body)
        #expect(try await edit(.patch, "/v1/rooms/R/policy?dryRun=perhaps", "{}").code == "invalid_request")
        #expect(try await edit(.patch, "/v1/rooms/R/policy", "{}", type: "text/plain").status == 415)
        #expect(try await edit(.patch, "/v1/rooms/none/policy", "{}").code == "room_not_found")
    }

    @Test("A token names the preset of the room that its join creates; a preset that is not there is refused")
    func presetOfToken() async throws {
        #expect(try await api.ask(.put, "/v1/presets/stage", #"{"maxPublishers":1}"#).status == 201)
        var claims = AccessClaims(apiKey: TestTokens.key.name, identity: "ada", expiresAt: .max, video: .join("R"))
        claims.video.preset = "stage"
        _ = try await api.rooms.rooms.join(JoinRequest(claims: claims))
        #expect(try await api.ask(.get, "/v1/rooms/R/policy").members["maxPublishers"] as? Int == 1)
        claims.video.preset = "none"
        claims.video.room = "S"
        let other = JoinRequest(claims: claims)
        await #expect(throws: RoomError.self) { _ = try await api.rooms.rooms.join(other) }
        #expect(try await api.ask(.get, "/v1/rooms/S").status == 404, "nothing is left of the refused join")
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"T","preset":"none"}"#).code == "preset_not_found")
        #expect(try await api.ask(.get, "/v1/presets").list("presets").map { $0["name"] as? String } == ["stage"])
        #expect(try await api.ask(.put, "/v1/presets/stage", "{}").status == 200)
        #expect(try await api.ask(.delete, "/v1/presets/stage").status == 204)
        #expect(try await api.ask(.get, "/v1/presets/stage").code == "preset_not_found")
        var bound = TestTokens.operatorGrant
        bound.room = "R"
        #expect(try await api.ask(.put, "/v1/presets/x", "{}", grant: bound).status == 403)
    }

    @Test(
        "I8: a participant's name, metadata and permissions change by merge patch; null empties a text and permits any source"
    )
    func participants() async throws {
        try await api.publisher("ada", in: "R")
        let path = "/v1/rooms/R/participants/ada"
        let patched = try await edit(
            .patch, path, #"{"name":"Ada","permissions":{"publishSources":["microphone"],"roomAdmin":true}}"#)
        #expect(patched.status == 200 && patched.members["name"] as? String == "Ada")
        let permissions = try #require(patched.members["permissions"] as? [String: Any])
        #expect(
            permissions["publishSources"] as? [String] == ["microphone"] && permissions["roomAdmin"] as? Bool == true)
        #expect(patched.list("tracks").map { $0["source"] as? String } == ["microphone"], "the camera has ended")
        let back = try await edit(.patch, path, #"{"name":null,"permissions":{"publishSources":null}}"#)
        #expect(back.members["name"] as? String == "")
        let reset = try #require(back.members["permissions"] as? [String: Any])
        #expect(reset["publishSources"] == nil && reset["roomAdmin"] as? Bool == true)
        let wrong = try await edit(.patch, path, #"{"permissions":{"hidden":true}}"#)
        #expect(wrong.status == 400 && wrong.members["pointer"] as? String == "/permissions/hidden")
        #expect(try await edit(.patch, "/v1/rooms/R/participants/bob", "{}").code == "participant_not_found")
    }

    @Test("I8: null gives a participant's permissions back as its token grants them, one by one or all")
    func grantedPermissions() async throws {
        var grant = VideoGrant.join("R")
        grant.canPublishData = false
        grant.canPublishSources = [.microphone]
        let claims = AccessClaims(
            apiKey: TestTokens.key.name, identity: "ada", expiresAt: .max, video: grant)
        _ = try await api.rooms.rooms.join(JoinRequest(claims: claims))
        func permissions(after change: String) async throws -> [String: Any] {
            let answer = try await edit(.patch, "/v1/rooms/R/participants/ada", #"{"permissions":\#(change)}"#)
            return try #require(answer.members["permissions"] as? [String: Any])
        }
        let all = #"{"canPublish":false,"canPublishData":true,"publishSources":["camera"],"roomAdmin":true}"#
        for _ in 0..<2 {
            let changed = try await permissions(after: all)
            #expect(changed["canPublishData"] as? Bool == true && changed["roomAdmin"] as? Bool == true)
            let some = try await permissions(after: #"{"canPublishData":null,"canPublish":null}"#)
            #expect(some["canPublishData"] as? Bool == false && some["canPublish"] as? Bool == true)
            #expect(some["roomAdmin"] as? Bool == true && some["publishSources"] as? [String] == ["camera"])
            let none = try await permissions(after: "null")
            #expect(none["roomAdmin"] as? Bool == false && none["canPublishData"] as? Bool == false)
            #expect(none["publishSources"] as? [String] == ["microphone"])
        }
    }

    @Test(
        "I3: subscribe rules are set and taken away, shown with the participant, and refused with the place where they are wrong"
    )
    func subscribeRules() async throws {
        try await api.publisher("ada", in: "R")
        let claims = AccessClaims(apiKey: TestTokens.key.name, identity: "bob", expiresAt: .max, video: .join("R"))
        _ = try await api.rooms.rooms.join(JoinRequest(claims: claims))
        let path = "/v1/rooms/R/participants/bob"
        #expect(try await api.ask(.get, path).list("subscriptions").count == 2)
        let rules = #"[{"action":"include","all":true},{"action":"exclude","kind":"video"}]"#
        let answer = try await edit(.put, "\(path)/subscriptions", rules)
        #expect(answer.status == 200 && answer.list("subscriptions").map { $0["kind"] as? String } == ["audio"])
        #expect(answer.list("subscribeRules").map { $0["action"] as? String } == ["include", "exclude"])
        for (body, pointer) in [
            (#"[{"action":"include"}]"#, "/0"), (#"[{"action":"allow","all":true}]"#, "/0/action"),
            (#"[{"action":"include","all":true},{"action":"exclude","kind":"smell"}]"#, "/1/kind"),
            (#"[{"action":"include","all":true,"kind":"audio"}]"#, "/0"),
        ] {
            let wrong = try await edit(.put, "\(path)/subscriptions", body)
            #expect(wrong.status == 400 && wrong.members["pointer"] as? String == pointer, "\(body)")
        }
        #expect(try await api.ask(.get, path).list("subscribeRules").count == 2, "nothing of those holds")
        let back = try await api.ask(.delete, "\(path)/subscriptions")
        #expect(back.list("subscriptions").count == 2 && back.members["subscribeRules"] == nil)
    }

    @Test("A room's metadata changes by merge patch")
    func metadata() async throws {
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"R","metadata":"a"}"#).status == 201)
        #expect(try await edit(.patch, "/v1/rooms/R", #"{"metadata":"b"}"#).members["metadata"] as? String == "b")
        #expect(try await edit(.patch, "/v1/rooms/R", #"{}"#).members["metadata"] as? String == "b")
        #expect(try await edit(.patch, "/v1/rooms/R", #"{"metadata":null}"#).members["metadata"] as? String == "")
        #expect(try await edit(.patch, "/v1/rooms/R", #"{"name":"S"}"#).members["pointer"] as? String == "/name")
    }

    @Test(
        "I8: whom an operator bans is refused with any token and with the reason, and is in the list until the ban ends"
    )
    func bans() async throws {
        try await api.publisher("ada", in: "R")
        let removed = try await api.ask(.delete, "/v1/rooms/R/participants/ada?reason=spam&ban=60")
        #expect(removed.status == 200)
        let bans = try await api.ask(.get, "/v1/rooms/R/bans").list("bans")
        #expect(bans.map { $0["identity"] as? String } == ["ada"] && bans.first?["reason"] as? String == "spam")
        let claims = AccessClaims(
            apiKey: TestTokens.key.name, identity: "ada", expiresAt: .max, issuedAt: .max, video: .join("R"))
        await #expect(throws: RoomError(.banned, "spam")) {
            _ = try await api.rooms.rooms.join(JoinRequest(claims: claims))
        }
        #expect(try await api.ask(.delete, "/v1/rooms/R/bans/ada").status == 204)
        _ = try await api.rooms.rooms.join(JoinRequest(claims: claims))
        #expect(try await api.ask(.delete, "/v1/rooms/R/bans/ada").code == "ban_not_found")
        let banned = try await api.ask(.put, "/v1/rooms/R/bans/ada", #"{"seconds":60,"reason":"again"}"#)
        #expect(banned.status == 200 && banned.members["reason"] as? String == "again")
        await #expect(throws: RoomError(.banned, "again")) {
            _ = try await api.rooms.rooms.join(JoinRequest(claims: claims))
        }
        #expect(try await api.ask(.get, "/v1/rooms/R/participants/ada").status == 404, "her stay has ended")
        // Who is not there, in a room that is not there, for a day.
        #expect(try await api.ask(.put, "/v1/rooms/later/bans/eve", "").status == 200)
        #expect(try await api.ask(.get, "/v1/rooms/later/bans/eve").members["identity"] as? String == "eve")
        #expect(try await api.ask(.get, "/v1/rooms/later/bans/bob").code == "ban_not_found")
        for body in [#"{"seconds":0}"#, #"{"reason":"a\nb"}"#, #"{"until":1}"#] {
            #expect(try await api.ask(.put, "/v1/rooms/R/bans/eve", body).status == 400)
        }
        for query in ["ban=0", "ban=x", "ban=99999999999", "reason=a%0Ab"] {
            #expect(try await api.ask(.delete, "/v1/rooms/R/participants/ada?\(query)").code == "invalid_request")
        }
    }

    @Test("Log levels are shown and changed by component; an unknown component or level changes nothing")
    func logLevels() async throws {
        func levels(_ answer: Answer) -> [String: String] { answer.members["levels"] as? [String: String] ?? [:] }
        let shown = levels(try await api.ask(.get, "/v1/node/log-levels"))
        let component = try #require(shown.keys.sorted().first)
        let changed = try await edit(.patch, "/v1/node/log-levels", #"{"levels":{"\#(component)":"error"}}"#)
        #expect(changed.status == 200 && levels(changed)[component] == "error")
        #expect(try await edit(.patch, "/v1/node/log-levels", #"{"levels":{"moon":"debug"}}"#).status == 409)
        #expect(try await edit(.patch, "/v1/node/log-levels", #"{"levels":{"\#(component)":"loud"}}"#).status == 400)
        #expect(levels(try await api.ask(.get, "/v1/node/log-levels")) == levels(changed))
    }

    @Test("I8: tokens are revoked by id and by identity, listed, and good again; nothing else is revoked")
    func revocations() async throws {
        let revoked = try await api.ask(.put, "/v1/revocations/token/t-1", #"{"seconds":60}"#)
        #expect(revoked.status == 200 && revoked.members["issuedAfter"] == nil)
        #expect(try await api.ask(.put, "/v1/revocations/identity/eve", "").members["issuedAfter"] as? Int != nil)
        let listed = try await api.ask(.get, "/v1/revocations").list("revocations")
        #expect(listed.map { $0["id"] as? String } == ["t-1", "eve"], "the first to end first")
        #expect(try await api.ask(.put, "/v1/revocations/moon/x", "").status == 404)
        #expect(try await api.ask(.put, "/v1/revocations/token/t-1", #"{"seconds":0}"#).status == 400)
        #expect(try await api.ask(.delete, "/v1/revocations/identity/eve").status == 204)
        #expect(try await api.ask(.delete, "/v1/revocations/identity/eve").status == 404)
    }
}
