import EdgeSupport
import MediaEngine
import MediaWorkers
import NetworkIO
import Primitives
import RoomService
import Rooms

/// Everything that an operator can configure about one server.
struct Configuration: Sendable {
    /// Where a listener listens.
    struct Listener: Sendable, Hashable {
        var host: String
        var port: UInt16
    }

    /// HTTP, WebSocket and the page.
    var http = Listener(host: "0.0.0.0", port: 7_880)
    /// Metrics and health; not for the public.
    var privateListener = Listener(host: "127.0.0.1", port: 7_881)
    var tlsCertificatePath: String?
    var tlsKeyPath: String?
    /// A proxy in front terminates TLS; its X-Forwarded fields are trusted.
    var trustedProxy = false
    /// Serves other machines without TLS, knowingly.
    var insecure = false
    var allowedOrigins = ["*"]
    /// Which listener serves the control API.
    var apiListener = WhichListener.publicOne
    /// Of each API key.
    var apiCallsPerSecond = 1_000
    /// API key name -> secret.
    var keys: [String: String] = [:]
    var iceServers: [ICEServers.Entry] = []
    /// How long TURN credentials that are made from a shared secret are valid.
    var iceCredentialsLifetime = TimeSpan.seconds(3_600)
    var media = MediaWorkerConfiguration()
    /// The STUN server that is asked for the addresses to announce.
    var stunServer: HostAndPort?
    var rooms = RoomServiceConfiguration()
    /// The most peer connections over all rooms; 0: as many as there is memory for.
    var maxConnections = 0
    /// The load at which joins are refused.
    var admission = AdmissionSettings()
    /// How long calls may continue after the process was asked to end.
    var drainTimeout = TimeSpan.zero
    /// Where webhooks and the events that wait for them are kept; nil: in memory.
    var databasePath: String?
    /// How long the summaries of past stays are kept.
    var sessionsKept = TimeSpan.seconds(86_400)
    var recording = RecordingSettings()
    /// Files below it may be played; nil: recordings only.
    var playbackDirectory: String?
    /// Playbacks at once.
    var maximumPlaybacks = 50
    /// Events may be posted to receivers in private networks and on this machine.
    var webhooksAllowPrivate = false
    /// The OpenTelemetry collector to which traces of joins go; nil: there are no traces.
    var traceCollector: String?
    var log = LogSettings()
    /// A built-in key, tokens for every client that asks, and, unless `insecure` is set, loopback only.
    var isDevelopment = false
    /// Where each setting was given, by path; those that were not are absent.
    var origins: [String: Origin] = [:]
    /// Suspicious settings that do not prevent the start.
    var warnings: [ConfigurationFault] = []
    /// Settings that are probably intended, but worth checking if something does not work.
    var notes: [ConfigurationFault] = []

    /// The built-in key of `--dev`.
    static let developmentKey = (name: "devkey", secret: "devsecret-devsecret-devsecret-00")

    /// The configuration of `--dev`: no file needed, nothing reachable from elsewhere.
    static var development: Configuration {
        var configuration = Configuration()
        configuration.becomeDevelopment()
        return configuration
    }

    /// Adds the built-in key and confines the server to this machine, unless `insecure` is set.
    mutating func becomeDevelopment() {
        isDevelopment = true
        webhooksAllowPrivate = true
        keys[Self.developmentKey.name] = Self.developmentKey.secret
        if origins["http.bind"] == nil { http.host = "127.0.0.1" }
        guard !servesOtherMachines else { return }
        // Firefox cannot reach an ICE-lite server on loopback: it does not pair its network addresses with loopback candidates. So the
        // machine's other addresses are announced too, but datagrams from other machines are ignored.
        media.bindAddress = nil
        media.discoversAddresses = false
        media.advertisedAddresses = [SocketAddress(ipv4: 0x7f00_0001, port: 0)] + NetworkInterfaces.addresses()
        media.engine.admittedHosts = media.advertisedAddresses
    }

    /// Whether clients on other machines may be served: with TLS, behind a proxy, or if explicitly permitted. The secret of `--dev` is public, so there
    /// only the explicit permission counts.
    var servesOtherMachines: Bool {
        isDevelopment
            ? insecure && (trustedProxy || !bindsLoopback) : tlsCertificatePath != nil || trustedProxy || insecure
    }

    /// The page's address on this machine, for a public listener on `port`.
    func pageAddress(port: UInt16) -> String {
        let host = !bindsLoopback ? "127.0.0.1" : http.host.contains(":") ? "[\(http.host)]" : http.host
        return "\(tlsCertificatePath == nil ? "http" : "https")://\(host):\(port)/"
    }

    /// Whether no other machine reaches the public listener.
    private var bindsLoopback: Bool { SocketAddress(numeric: http.host)?.isLoopback ?? false }

    /// The rooms' configuration, completed for this machine.
    var roomsHere: RoomServiceConfiguration {
        var rooms = rooms
        // If the kernel does not report it, that of a small machine.
        let memory = MachineMemory.limitBytes() ?? 1 << 30
        rooms.maxConnections =
            maxConnections > 0 ? maxConnections : RoomServiceConfiguration.connections(fittingInto: memory)
        return rooms
    }

    /// The limits of load on this machine: shares of its memory and of the files that the process may open.
    func loadLimits(openFiles: Int) -> LoadLimits {
        let rooms = roomsHere
        var limits = admission.limits(memory: MachineMemory.limitBytes(), openFiles: openFiles)
        limits.connections = rooms.maxConnections
        limits.participants = rooms.maxParticipants
        return limits
    }

    /// The workers' configuration, completed with what the recorder needs.
    var mediaHere: MediaWorkerConfiguration {
        var media = media
        if let bytes = recording.ringBytes { media.recordRingBytes = bytes }
        return media
    }

    /// A fault of the setting at `path`, with the place where it was given.
    func fault(_ path: String, _ problem: String) -> ConfigurationFault {
        ConfigurationFault(origin: origins[path], path: path, problem: problem)
    }
}
