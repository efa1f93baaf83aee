import CSoup
import Primitives

/// Counting connections, and letting go of those that are closed.
///
/// libsoup before 3.4 keeps one reference to each socket that it accepted, and never notices that a client closed a connection which
/// it kept for further requests. So every response closes its connection (`SoupMessage.write`), and the sockets are
/// counted and released here.
extension HTTPListener {
    /// How often closed sockets are looked for: soon enough for the limit on connections to mean something.
    private static let sweepInterval = TimeInterval.milliseconds(100)
    /// A socket closed for so many sweeps has no closing call under way that still holds it.
    private static let sweepsUntilRelease = 3
    /// Where nobody has come and nothing has closed for so many sweeps, the next ones come once a second: thousands of open WebSockets cost
    /// nothing to keep.
    private static let quietAfter = 20
    private static let quietInterval = TimeInterval.seconds(1)

    /// A connection is seen for the first time, or again.
    func admit(_ socket: UnsafeMutablePointer<GSocket>) {
        guard sockets.updateValue(0, forKey: UInt(bitPattern: socket)) == nil else { return }
        sweepsSinceChange = 0
        headless[UInt(bitPattern: socket)] = 0
        g_object_ref(socket)
        let isTooMany = counters.statistics.connections >= configuration.maximumConnections
        counters.change { $0.connections += 1 }
        g_socket_set_timeout(socket, guint(clamping: max(1, configuration.idleTimeout.milliseconds / 1_000)))
        if isTooMany {
            counters.change { $0.overloads += 1 }
            g_socket_shutdown(socket, 1, 1, nil)
        }
        if sweeper == nil || sweepsSeldom { startSweeping(seldom: false) }
    }

    private func startSweeping(seldom: Bool) {
        sweepsSeldom = seldom
        sweeper = GLibSource(every: seldom ? Self.quietInterval : Self.sweepInterval, on: loop) { [weak self] in
            self?.assumeIsolated { $0.sweep() } ?? false
        }
    }

    /// Releases sockets that are closed; whether to go on at this pace.
    private func sweep() -> Bool {
        giveUpOnHeads()
        sweepsSinceChange += 1
        for (key, sweeps) in sockets {
            guard let socket = UnsafeMutablePointer<GSocket>(bitPattern: key), g_socket_is_closed(socket) != 0 else {
                continue
            }
            sweepsSinceChange = 0
            headless[key] = nil
            if sweeps == 0 { counters.change { $0.connections -= 1 } }
            if sweeps < Self.sweepsUntilRelease {
                sockets[key] = sweeps + 1
            } else {
                sockets[key] = nil
                csoup_release_accepted(socket)
            }
        }
        if sockets.isEmpty {
            sweeper = nil
            return false
        }
        let isQuiet = headless.isEmpty && sweepsSinceChange >= Self.quietAfter
        guard isQuiet != sweepsSeldom else { return true }
        startSweeping(seldom: isQuiet)
        return false
    }

    /// Ends connections whose request still has not come: a byte now and then does not keep one open.
    private func giveUpOnHeads() {
        let limit = Int(configuration.headTimeout.milliseconds / Self.sweepInterval.milliseconds)
        for (key, sweeps) in headless {
            guard sweeps >= limit else {
                headless[key] = sweeps + 1
                continue
            }
            headless[key] = nil
            counters.change { $0.requestTimeouts += 1 }
            if let socket = UnsafeMutablePointer<GSocket>(bitPattern: key) { g_socket_shutdown(socket, 1, 1, nil) }
        }
    }

    /// Ends and releases all connections: nobody is served any more.
    func releaseConnections() {
        sweeper?.cancel()
        sweeper = nil
        for (key, sweeps) in sockets {
            guard let socket = UnsafeMutablePointer<GSocket>(bitPattern: key) else { continue }
            if sweeps == 0 { counters.change { $0.connections -= 1 } }
            g_socket_shutdown(socket, 1, 1, nil)
            g_object_unref(socket)
        }
        sockets = [:]
        headless = [:]
    }
}
