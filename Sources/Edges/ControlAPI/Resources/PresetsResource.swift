import EdgeSupport
import HTTPServing
import RoomService
import Rooms

/// Named rules that rooms are made with.
struct PresetsResource: Resource {
    let access: APIAccess

    var operations: [Operation] {
        let preset = "/v1/presets/{preset}"
        return [
            .get("/v1/presets", listPresets),
            .get(preset, showPreset),
            .put(preset, putPreset),
            .patch(preset, patchPreset),
            .delete(preset, deletePreset),
        ]
    }

    func listPresets(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorizeServer(request)
        return try ListPage(of: await context.rooms.listPresets(), request) { $0.name }
            .response("presets") { PresetModel(name: $0.name, policy: PolicyModel($0.document)) }
    }

    func showPreset(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorizeServer(request)
        let name = try request.parameter("preset")
        let document = try await asking { () async throws(RoomError) in try await context.rooms.preset(named: name) }
        return .json(PresetModel(name: name, policy: PolicyModel(document)))
    }

    func putPreset(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorizeServer(request)
        let name = try request.parameter("preset")
        let model = try body(PolicyModel.self, of: request)
        let isNew = try await asking { () async throws(RoomError) in
            try await context.rooms.setPreset(model.document, named: name)
        }
        return .json(PresetModel(name: name, policy: model), status: isNew ? 201 : 200)
    }

    /// Applies a merge patch to the preset, for rooms that are made from now on.
    func patchPreset(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorizeServer(request)
        let name = try request.parameter("preset")
        let changed = try await asking { () async throws(RoomError) in
            try await context.rooms.changePreset(named: name) { current in
                Result { () throws(Problem) in try patched(PolicyModel(current), by: request).document }
            }
        }
        return .json(PresetModel(name: name, policy: PolicyModel(try changed.get())))
    }

    func deletePreset(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorizeServer(request)
        let name = try request.parameter("preset")
        try await asking { () async throws(RoomError) in try await context.rooms.deletePreset(named: name) }
        return HTTPResponse(status: 204)
    }

}
