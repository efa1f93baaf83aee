import AccessTokens
import EdgeSupport
import HTTPServing
import Logging
import ObjectStorage
import Primitives
import Recorder
import RoomService
import Webhooks

extension Server {
    /// Reads the configuration again, all or nothing: where it has a fault, the log says which, with file and line, and what was in force stays.
    func reload(file: String?, environment: [String: String]) async {
        let fresh: Configuration
        do throws(ConfigurationError) {
            let machine = Machine.current.holding(database: configuration.databasePath)
            fresh = try Configuration.load(file: file, environment: environment, development: false, on: machine)
        } catch {
            for fault in error.faults { logger.error("\(fault)") }
            logger.error("the configuration was not reloaded; the one from before stays in force")
            return
        }
        let reload = Reload(configuration, from: fresh)
        // First what can still fail: the files may have changed since they were checked.
        let storage: ObjectStore.Configuration?
        do throws(SettingProblem) {
            storage = try recordingStorage(reload)
        } catch {
            logger.error("\(fresh.fault(error.path, error.problem))")
            logger.error("the configuration was not reloaded; the one from before stays in force")
            return
        }
        guard await replaceCertificate(reload.configuration) else { return }
        if let storage { recorder?.useKeys(of: storage) }
        await apply(reload)
        for fault in reload.needsRestart { logger.warning("\(fault)") }
        for warning in fresh.warnings { logger.warning("\(warning)") }
        logger.info(
            "the configuration was reloaded",
            ["changed": .text(reload.changed.isEmpty ? "nothing" : reload.changed.joined(separator: ", "))])
    }

    /// The storage of recordings with the keys that its file has now, be it another file or the same; nil where there is none, or another one that needs a restart.
    private func recordingStorage(_ reload: Reload) throws(SettingProblem) -> ObjectStore.Configuration? {
        guard recorder != nil, reload.keepsStorage else { return nil }
        return try reload.configuration.recording.upload.storage()
    }

    /// Read again even where the paths are the same: a renewed certificate has the name of the old one.
    private func replaceCertificate(_ configuration: Configuration) async -> Bool {
        guard let files = configuration.publicHTTP.tls else { return true }
        do throws(HTTPServerError) {
            try await publicListener.replaceCertificate(files)
            return true
        } catch {
            logger.error("\(configuration.explain(error, .publicOne))")
            logger.error("the configuration was not reloaded; the one from before stays in force")
            return false
        }
    }

    private func apply(_ reload: Reload) async {
        let next = reload.configuration
        live.configuration.value = next
        live.verifier.value = TokenVerifier(next)
        // Whoever has an outdated key could read along for as long as a token says that it is good.
        await rooms.endFeeds(ofKeys: reload.outdatedKeys)
        // Whoever is connected is told of them.
        if live.iceServers.value != next.iceServerSettings { live.iceServers.value = next.iceServerSettings }
        live.apiCallsPerSecond.value = next.apiCallsPerSecond
        await rooms.set(next.roomsHere)
        rooms.load.set(next.loadLimits(openFiles: live.openFiles))
        await webhooks.set(keys: next.apiKeys, allowsPrivate: next.webhooksAllowPrivate)
        // What an operator set for a component by the control API stays, unless the file now says something else.
        if reload.changed.contains("log.level") { logger.output.setLevel(next.log.level) }
        // Who restarted a router need not wait for the next query. Last: the name server and the STUN server may take long to answer.
        _ = await addresses?.ask()
    }
}

/// What a reload replaces.
struct LiveConfiguration: Sendable {
    let configuration: Live<Configuration>
    let verifier: Live<TokenVerifier>
    let iceServers: Live<ICEServers.Settings>
    /// How many calls of the APIs each key may make.
    let apiCallsPerSecond: Live<Int>
    /// How many files the process may open.
    let openFiles: Int

    init(_ configuration: Configuration, openFiles: Int) {
        self.configuration = Live(configuration)
        verifier = Live(TokenVerifier(configuration))
        iceServers = Live(configuration.iceServerSettings)
        apiCallsPerSecond = Live(configuration.apiCallsPerSecond)
        self.openFiles = openFiles
    }
}

extension Configuration {
    /// What clients are told of.
    var iceServerSettings: ICEServers.Settings {
        ICEServers.Settings(
            iceServers, lifetimeSeconds: Int64(iceCredentialsLifetime.seconds), defaultRoom: rooms.defaultRoom)
    }
}
