import EdgeSupport
import MediaWorkers
import NetworkIO
import Primitives

/// What on the machine prevents serving, and what to do about it.
extension Configuration {
    /// 2026-01-01, before this program was written: an earlier clock was never set.
    private static let earliestClock: Int64 = 1_767_225_600

    /// What prevents serving.
    func machineFaults(_ machine: Machine) -> [ConfigurationFault] { clockFaults(machine) + exposedSecrets(machine) }

    private func clockFaults(_ machine: Machine) -> [ConfigurationFault] {
        guard machine.now < Self.earliestClock else { return [] }
        return [
            .init(
                problem:
                    "the clock of this machine is wrong: it is before 2026, so every token and certificate would be refused; "
                    + "set it ('timedatectl set-ntp true', or the clock of the host)")
        ]
    }

    /// Secrets in files that every user of the machine can read.
    private func exposedSecrets(_ machine: Machine) -> [ConfigurationFault] {
        var faults: [ConfigurationFault] = []
        let secret = origins.filter { path, _ in
            path.hasPrefix("keys.")
                || path == "ice_servers" && iceServers.contains { $0.secret != nil || $0.server.credential != nil }
        }
        let lines = secret.values.compactMap { if case .file(let file, let line) = $0 { (file, line) } else { nil } }
        if let (file, line) = lines.min(by: { $0.1 < $1.1 }), machine.isExposed(file) {
            faults.append(
                .init(
                    origin: .file(file, line: line),
                    problem: "a secret is in a file that every user of this machine can read or write; "
                        + "'chmod o-rwx \(file)', and make it belong to the user or group of the server"))
        }
        if let tlsKeyPath, machine.isExposed(tlsKeyPath) {
            faults.append(
                fault(
                    "http.tls.key",
                    "every user of this machine can read or write '\(tlsKeyPath)'; "
                        + "'chmod o-rwx \(tlsKeyPath)', and make it belong to the user or group of the server"))
        }
        if let credentials = recording.upload.credentials, machine.isExposed(credentials) {
            faults.append(
                fault(
                    "recording.upload_credentials",
                    "every user of this machine can read or write '\(credentials)', which has the storage's keys; "
                        + "'chmod o-rwx \(credentials)', and make it belong to the user or group of the server"))
        }
        if let databasePath, machine.isExposed(databasePath) {
            faults.append(
                fault(
                    "storage.path",
                    "every user of this machine can read or write '\(databasePath)', which has the secrets of webhooks; "
                        + "'chmod o-rwx \(databasePath)*'"))
        }
        return faults
    }

    /// Warnings about what makes the service worse than it could be.
    func machineWarnings(_ machine: Machine) -> [ConfigurationFault] {
        var warnings: [ConfigurationFault] = []
        func warn(_ problem: String) { warnings.append(.init(problem: problem)) }
        let wanted = UDPSocketConfiguration(port: 0)
        for (what, setting, granted, wanted) in [
            ("receive", "rmem_max", machine.receiveBufferBytes, wanted.receiveBufferBytes),
            ("send", "wmem_max", machine.sendBufferBytes, wanted.sendBufferBytes),
        ] where granted < wanted {
            warn(
                "the kernel gives media sockets a \(what) buffer of \(granted >> 10) KiB instead of \(wanted >> 10): packets are lost "
                    + "when many arrive at once; 'sysctl -w net.core.\(setting)=\(wanted)' (on the node, for a container)"
            )
        }
        if !machine.hasAES {
            warn(
                "this processor has no AES instructions, or the virtual machine hides them: encryption takes several times as long; "
                    + "let the virtual machine have the host's processor type")
        }
        return warnings
    }

    /// Notes about what may be intended.
    func machineNotes(_ machine: Machine) -> [ConfigurationFault] {
        var notes: [ConfigurationFault] = []
        if !machine.isClockKept {
            notes.append(
                .init(
                    problem: "nothing keeps the clock of this machine right; tokens tolerate 60 s of clock skew: "
                        + "run chrony or systemd-timesyncd, here or on the host"))
        }
        if !machine.mayPreferThreads {
            notes.append(
                .init(
                    problem:
                        "media threads run at the priority of other programs; where processors are shared, packets wait for them: "
                        + "permit a higher one (AmbientCapabilities=CAP_SYS_NICE or LimitNICE=-10 in systemd, ulimit -e 30)"
                ))
        }
        guard !isDevelopment else { return notes }
        let own = machine.interfaces.flatMap(\.addresses).map(\.host)
        for address in media.advertisedAddresses where !own.contains(address.host) && !address.isLoopback {
            notes.append(
                fault(
                    "media.announced_addresses",
                    "\(address.host) is not an address of this machine: whoever has it must forward the media ports here"
                ))
        }
        return notes
    }
}
