import Glibc
import HTTPServing
import Logging

/// How many files and sockets the process may open, and has open.
enum OpenFiles {
    /// Raises the limit to what the system allows, because each signalling socket needs a descriptor and the usual soft limit is 1,024; returns the limit.
    static func raiseLimit() -> Int {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0 else { return 1_024 }
        var raised = limit
        raised.rlim_cur = limit.rlim_max
        if setrlimit(resource, &raised) == 0 { limit = raised }
        return Int(clamping: limit.rlim_cur)
    }

    /// How many are open now.
    static func inUse() -> Int {
        // Since Linux 6.2 the folder's size is the number, so thousands of names need not be read (proc_pid_fd(5)).
        var status = stat()
        if stat("/proc/self/fd", &status) == 0, status.st_size > 0 { return Int(status.st_size) }
        guard let folder = opendir("/proc/self/fd") else { return 64 }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // Without ".", ".." and the folder's own.
        return max(0, count - 3)
    }
}

/// How the descriptors that the process may have are divided: media opens its own before the listeners do, and the private listener has
/// its own share, so that health and metrics answer whatever happens to the public one.
struct ConnectionShare {
    /// For a Prometheus, two probes and an operator, with connections that they keep open; the oldest is closed for a new one.
    private static let probes = 16
    /// The share of the private listener if it serves the control API: backends and operators' pages keep event streams and WebSockets open, which are
    /// not closed for new ones.
    private static let callers = 1_024
    /// Descriptors that the process opens later: the listeners themselves (3 each), signals, /proc and the network's tables while they are read.
    private static let others = 20
    /// With fewer, no room can be served.
    private static let fewest = 8

    /// The number that the configuration requests, and the number that the public listener gets.
    let wanted: Int
    let publicConnections: Int
    /// What the private listener gets.
    let privateConnections: Int

    /// TCP connections of each media worker: together a quarter of the descriptors beyond a small server's needs.
    static func mediaConnections(openFiles: Int, workers: Int, wanted: Int) -> Int {
        min(wanted, max(1, (openFiles - 64) / 4 / max(1, workers)))
    }

    /// Divides `openFiles`, of which `inUse` are open already or reserved for media. `isAPIPrivate`: the private listener serves the control API, and gets a
    /// quarter if there are few.
    init(
        openFiles: Int, inUse: Int, isAPIPrivate: Bool,
        wanted: Int = HTTPServerConfiguration(host: "", port: 0).maximumConnections
    ) throws(CommandError) {
        self.wanted = wanted
        let left = openFiles - inUse - Self.others
        guard left >= Self.probes + Self.fewest else {
            let needed = openFiles - left + Self.probes + Self.fewest
            throw CommandError(
                message:
                    "martlet: the process may open \(openFiles) files and needs at least \(needed); raise the limit "
                    + "(ulimit -n, LimitNOFILE=)", exitCode: 1)
        }
        privateConnections = isAPIPrivate ? min(Self.callers, max(Self.probes, left / 4)) : Self.probes
        publicConnections = min(wanted, left - privateConnections)
    }
}

extension Configuration {
    /// The two listeners, each with its share of `openFiles`. Media's sockets are open by now, and it may have `media` connections.
    func listeners(
        openFiles: Int, media: Int, _ logger: Logger
    ) throws(CommandError) -> (publicHTTP: HTTPServerConfiguration, privateHTTP: HTTPServerConfiguration) {
        let share = try ConnectionShare(
            openFiles: openFiles, inUse: OpenFiles.inUse() + media, isAPIPrivate: apiListener == .privateOne)
        if share.publicConnections < share.wanted {
            logger.warning(
                "the limit on open files bounds HTTP connections; to allow more, raise it (ulimit -n, LimitNOFILE=)",
                ["open_files": .number(openFiles), "connections": .number(share.publicConnections)])
        }
        var (publicHTTP, privateHTTP) = (publicHTTP, privateHTTP)
        publicHTTP.maximumConnections = share.publicConnections
        privateHTTP.maximumConnections = share.privateConnections
        // Streams hold a quarter at most, so that both together leave connections for health, metrics and calls.
        privateHTTP.maximumWebSockets = share.privateConnections / 2
        return (publicHTTP, privateHTTP)
    }
}
