/// The settings that SIGHUP changes while the server runs, in addition to keys. All others are read only at the start.
extension Setting {
    /// Paths of settings that a reload changes.
    static let reloadable: Set<String> = [
        "http.tls.certificate", "http.tls.key", "http.api_calls_per_second", "ice_servers", "ice_credentials_lifetime",
        "admission.max_cpu",
        "admission.max_bandwidth_out", "admission.max_memory", "admission.max_open_files",
        "admission.max_socket_drops", "rooms.default", "rooms.auto_create", "rooms.max_rooms", "rooms.max_participants",
        "rooms.max_participants_total", "rooms.max_connections", "rooms.joins_per_second", "rooms.max_checks",
        "rooms.audio_codecs",
        "rooms.video_codecs", "rooms.max_video_subscriptions", "rooms.max_video_bitrate", "rooms.max_uplink_bitrate",
        "rooms.max_downlink_bitrate", "rooms.empty_timeout", "rooms.departure_timeout", "rooms.closed_for",
        "sessions.drain", "recording.upload_credentials", "webhooks.allow_private", "log.level",
    ]
}

/// How a reload changes the configuration in force.
struct Reload {
    /// What is in force afterwards.
    var configuration: Configuration
    /// Paths of what has changed, in the order of the settings; keys as "keys.NAME".
    var changed: [String] = []
    /// API keys that were removed or have another secret: tokens that they have signed are no longer valid.
    var outdatedKeys: Set<String> = []
    /// What has changed in the file or the environment and needs a restart.
    var needsRestart: [ConfigurationFault] = []
    /// Whether recordings are uploaded to the same storage as before, so that its keys may change.
    let keepsStorage: Bool

    /// Takes those settings from `fresh`, which was checked as a whole, that may change while the server runs.
    init(_ current: Configuration, from fresh: Configuration) {
        configuration = current
        // A listener with TLS cannot become one without TLS.
        let hasTLS = current.tlsCertificatePath != nil
        let keepsTLS = hasTLS == (fresh.tlsCertificatePath != nil)
        // The keys of another storage are not valid for this one.
        let (upload, next) = (current.recording.upload, fresh.recording.upload)
        keepsStorage =
            upload.endpoint == next.endpoint && upload.bucket == next.bucket
            && (upload.credentials == nil) == (next.credentials == nil)
        for setting in Setting.all {
            let isTLS = setting.path.hasPrefix("http.tls."), isStorage = setting.path.hasPrefix("recording.upload_")
            if Setting.reloadable.contains(setting.path), !isTLS || keepsTLS, !isStorage || keepsStorage {
                if setting.carry(&configuration, fresh) { changed.append(setting.path) }
                configuration.origins[setting.path] = fresh.origins[setting.path]
            } else {
                var unchanged = current
                guard setting.carry(&unchanged, fresh) else { continue }
                let origin = fresh.origins[setting.path] ?? current.origins[setting.path]
                needsRestart.append(
                    .init(
                        origin: origin, path: setting.path,
                        problem: "has changed and is read at start only; restart the server for it"))
            }
        }
        let names = Set(current.keys.keys).union(fresh.keys.keys).sorted()
        changed += names.filter { current.keys[$0] != fresh.keys[$0] }.map { "keys.\($0)" }
        outdatedKeys = Set(current.keys.keys.filter { current.keys[$0] != fresh.keys[$0] })
        configuration.keys = fresh.keys
        configuration.origins = configuration.origins.filter { !$0.key.hasPrefix("keys.") }
        for (path, origin) in fresh.origins where path.hasPrefix("keys.") { configuration.origins[path] = origin }
    }
}
