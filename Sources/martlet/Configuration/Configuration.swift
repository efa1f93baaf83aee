import AccessTokens
import Glibc
import HTTPServing
import Logging
import MediaEngine
import MediaWorkers
import NetworkIO
import Primitives
import RoomService

/// Everything that an operator can say about one server.
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
    /// A proxy in front ends TLS; its X-Forwarded fields are believed.
    var trustedProxy = false
    /// Serves other machines without TLS, knowingly (C16).
    var insecure = false
    var allowedOrigins = ["*"]
    /// API key name -> secret.
    var keys: [String: String] = [:]
    var iceServerURLs: [String] = []
    var media = MediaWorkerConfiguration()
    var rooms = RoomServiceConfiguration()
    /// Peer connections over all rooms; 0: as many as there is memory for.
    var maxConnections = 0
    /// How long calls may go on after the process was asked to end.
    var drainTimeout = TimeInterval.zero
    var logLevel = LogLevel.info
    var logFormat = LogFormat.text
    var logShowsAddresses = false
    /// Loopback only, a built-in key, tokens for whoever asks.
    var isDevelopment = false

    /// The built-in key of `--dev`.
    static let developmentKey = (name: "devkey", secret: "devsecret-devsecret-devsecret-00")

    /// The configuration of `--dev`: no file needed, nothing reachable from elsewhere.
    static var development: Configuration {
        var configuration = Configuration()
        configuration.http.host = "127.0.0.1"
        configuration.becomeDevelopment()
        return configuration
    }

    /// Confines the server to this machine and adds the built-in key.
    mutating func becomeDevelopment() {
        isDevelopment = true
        privateListener.host = "127.0.0.1"
        // Firefox reaches no ICE-lite server on loopback: it pairs its network addresses with no loopback candidate. So the
        // machine's other addresses are named too, and whoever comes from elsewhere is not listened to.
        media.bindAddress = nil
        media.advertisedAddresses = [SocketAddress(ipv4: 0x7f00_0001, port: 0)] + NetworkInterfaces.addresses()
        media.engine.admittedHosts = servesOtherMachines ? [] : media.advertisedAddresses
        keys[Self.developmentKey.name] = Self.developmentKey.secret
    }

    /// Whether clients on other machines may be served: with TLS, behind a proxy, or when told so. The secret of `--dev` is public, so there
    /// only the plain word counts.
    var servesOtherMachines: Bool {
        isDevelopment ? insecure && !bindsLoopback : tlsCertificatePath != nil || trustedProxy || insecure
    }

    /// The host of the page's address on this machine.
    var pageHost: String {
        guard bindsLoopback else { return "127.0.0.1" }
        return http.host.contains(":") ? "[\(http.host)]" : http.host
    }

    /// Whether no other machine reaches the public listener.
    private var bindsLoopback: Bool { SocketAddress(numeric: http.host)?.isLoopback ?? false }

    /// The rooms' configuration with what follows from this machine.
    var roomsHere: RoomServiceConfiguration {
        var rooms = rooms
        // Where the kernel does not tell, what a small machine has.
        let memory = MachineMemory.limitBytes() ?? 1 << 30
        rooms.maxConnections =
            maxConnections > 0 ? maxConnections : RoomServiceConfiguration.connections(fittingInto: memory)
        return rooms
    }

    /// What makes the configuration unusable, one sentence a fault.
    var faults: [String] {
        var faults: [String] = []
        if keys.isEmpty {
            faults.append(
                "keys: no API key is configured; add 'NAME: SECRET' under 'keys' (or MARTLET_KEYS=NAME:SECRET), "
                    + "with a secret from 'openssl rand -hex 32', or start with --dev")
        }
        let least = AccessTokenLimits.secretMinimumBytes
        for (name, secret) in keys.sorted(by: { $0.key < $1.key }) where secret.utf8.count < least {
            faults.append(
                "keys.\(name): the secret has \(secret.utf8.count) bytes; HS256 needs \(least): "
                    + "'openssl rand -hex 32' makes a good one")
        }
        if (tlsCertificatePath == nil) != (tlsKeyPath == nil) {
            faults.append("http.tls: certificate and key go together")
        }
        for (setting, path) in [("certificate", tlsCertificatePath), ("key", tlsKeyPath)] {
            if let path, access(path, R_OK) != 0 {
                faults.append("http.tls.\(setting): '\(path)' cannot be read: \(String(cString: strerror(errno)))")
            }
        }
        if isDevelopment, !insecure, !bindsLoopback {
            faults.append(
                "http.bind: --dev accepts tokens signed with a secret that everybody knows, so it does not listen on "
                    + "\(http.host); bind 127.0.0.1, or set 'insecure: true' knowingly")
        }
        let workers = media.workers > 0 ? media.workers : Processors.usable.count
        for address in media.advertisedAddresses where address.port > 0 && Int(address.port) + workers > 65_536 {
            faults.append(
                "media.announced_addresses: \(address.textWithPort): with \(workers) media workers the ports go beyond 65535"
            )
        }
        if http.port == privateListener.port, http.port != 0 {
            faults.append("private.port: \(privateListener.port) is the public listener's port")
        }
        return faults
    }
}
