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
    /// Reads the configuration again, all or nothing: if it has a fault, that is logged with file and line, and the previous configuration stays in force.
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
        // First the steps that can still fail: the files may have changed since they were checked.
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

    /// The storage of recordings with the keys that are in its file now, whether it is the same file or another one; nil if there is no storage, or another
    /// one, which needs a restart.
    private func recordingStorage(_ reload: Reload) throws(SettingProblem) -> ObjectStore.Configuration? {
        guard recorder != nil, reload.keepsStorage else { return nil }
        return try reload.configuration.recording.upload.storage()
    }

    /// Reads the certificate again even if the paths are the same: a renewed certificate has the name of the old one.
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
        // Otherwise a reader with an outdated key could continue until its token expires.
        await rooms.endFeeds(ofKeys: reload.outdatedKeys)
        // Connected clients are notified of the new ones.
        if live.iceServers.value != next.iceServerSettings { live.iceServers.value = next.iceServerSettings }
        live.apiCallsPerSecond.value = next.apiCallsPerSecond
        await rooms.set(next.roomsHere)
        rooms.load.set(next.loadLimits(openFiles: live.openFiles))
        await webhooks.set(keys: next.apiKeys, allowsPrivate: next.webhooksAllowPrivate)
        // A component's level that was set by the control API stays, unless the file now has another one.
        if reload.changed.contains("log.level") { logger.output.setLevel(next.log.level) }
        // After a router's restart, a reload makes the next query unnecessary. Last, because the name server and the STUN server may take long to answer.
        _ = await addresses?.ask()
    }
}

/// What a reload replaces.
struct LiveConfiguration: Sendable {
    let configuration: Live<Configuration>
    let verifier: Live<TokenVerifier>
    let iceServers: Live<ICEServers.Settings>
    /// How many API calls per second each key may make.
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
    /// The ICE servers that are announced to clients.
    var iceServerSettings: ICEServers.Settings {
        ICEServers.Settings(
            iceServers, lifetimeSeconds: Int64(iceCredentialsLifetime.seconds), defaultRoom: rooms.defaultRoom)
    }
}
