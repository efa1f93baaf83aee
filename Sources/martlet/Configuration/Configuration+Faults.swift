import AccessTokens
import MediaWorkers
import NetworkIO
import Primitives

/// Faults that make a configuration unusable although each of its values is valid, found before anything is opened.
extension Configuration {
    static let noKey = ConfigurationFault(
        path: "keys",
        problem: "no API key is configured; add 'NAME: SECRET' under 'keys' (or MARTLET_KEYS=NAME:SECRET), "
            + "with a secret from 'openssl rand -hex 32', or start with --dev")

    /// What prevents serving on `machine`, with its files, addresses and processors.
    func faults(on machine: Machine) -> [ConfigurationFault] {
        developmentFaults + portFaults(machine) + mediaFaults + tlsFaults + workerFaults(machine)
            + bindFaults(machine) + interfaceFaults(machine) + storageFaults(machine) + machineFaults(machine)
    }

    /// Warnings about surprises that do not prevent the start.
    func warnings(on machine: Machine) -> [ConfigurationFault] {
        var warnings = certificateWarnings(at: machine.now) + machineWarnings(machine)
        if !servesOtherMachines, !isDevelopment {
            warnings.append(
                .init(
                    problem:
                        "only clients on this machine are served; set http.tls, trusted_proxy or insecure to serve others"
                ))
        }
        for path in ["media.interfaces", "media.networks"] where origins[path] != nil {
            if !media.advertisedAddresses.isEmpty, !isDevelopment {
                warnings.append(fault(path, "has no effect: media.announced_addresses names the addresses"))
            } else if media.bindAddress != nil {
                warnings.append(fault(path, "has no effect: media.bind names the address"))
            }
        }
        return warnings
    }

    /// Faults of keys that cannot sign, or whose names cannot be used everywhere.
    var keyFaults: [ConfigurationFault] {
        let least = AccessTokenLimits.secretMinimumBytes
        return keys.sorted { $0.key < $1.key }.compactMap { name, secret in
            // MARTLET_KEYS uses these two as separators, and unprintable characters make a name look like another one.
            let isGood = !name.isEmpty && name.utf8.allSatisfy { 0x21...0x7e ~= $0 && !",:".utf8.contains($0) }
            guard isGood else {
                return fault(
                    "keys.\(name)", "the name of a key must be printable ASCII without spaces, commas and colons")
            }
            guard secret.utf8.count < least else { return nil }
            return fault(
                "keys.\(name)",
                "the secret has \(secret.utf8.count) bytes; HS256 needs \(least): 'openssl rand -hex 32' generates one"
            )
        }
    }

    /// The secret of a development server is public, so it must not be reachable by accident.
    private var developmentFaults: [ConfigurationFault] {
        guard isDevelopment, !insecure else { return [] }
        func refuse(_ path: String, _ advice: String) -> ConfigurationFault {
            fault(
                path, "--dev accepts tokens signed with a publicly known secret; \(advice), or set insecure: true"
            )
        }
        let listeners = [("http.bind", http.host), ("private.bind", privateListener.host)]
        let open = listeners.filter { SocketAddress(numeric: $0.1)?.isLoopback == false }
        return open.map { refuse($0, "remove \($0) instead of setting it to \($1)") }
            + (trustedProxy ? [refuse("trusted_proxy", "remove trusted_proxy")] : [])
    }

    private var mediaFaults: [ConfigurationFault] {
        var faults: [ConfigurationFault] = []
        for address in media.advertisedAddresses where address.isUnspecified || address.isMulticast {
            faults.append(
                fault(
                    "media.announced_addresses",
                    "clients cannot send to \(address.host); name an address of the server"))
        }
        if media.discoversAddresses, stunServer == nil {
            faults.append(
                fault(
                    "media.announced_addresses",
                    "'discover' needs a STUN server to ask; set media.stun_server, for example to stun.example.org:3478"
                ))
        }
        if let bind = media.bindAddress, bind.isUnspecified, media.advertisedAddresses.isEmpty {
            faults.append(
                fault(
                    "media.bind",
                    "\(bind.host) would be advertised to clients; remove media.bind to use all addresses"))
        }
        return faults
    }

    /// Each worker needs a separate port, and a separate mapped port.
    private func workerFaults(_ machine: Machine) -> [ConfigurationFault] {
        let workers = workers(on: machine)
        let reason = media.workers > 0 ? "" : " (one per core)"
        func fault(_ path: String, _ first: UInt16, _ name: String) -> ConfigurationFault? {
            let last = Int(first) + workers - 1
            guard first > 0, last > 65_535 else { return nil }
            return self.fault(
                path,
                "\(workers) workers\(reason) need the ports \(first) to \(last)\(name), but the last port is 65535; "
                    + "start at \(65_536 - workers) or lower")
        }
        let mapped = media.advertisedAddresses.map {
            fault("media.announced_addresses", $0.port, " at \($0.host)")
        }
        return ([fault(workerPortsPath, media.udpBasePort, "")] + mapped).compactMap { $0 }
    }

    private func bindFaults(_ machine: Machine) -> [ConfigurationFault] {
        let listeners = [
            ("http.bind", http.host), ("private.bind", privateListener.host), ("media.bind", media.bindAddress?.host),
        ]
        return listeners.compactMap { path, host in
            // On a machine without IPv6, `::` means any IPv4 address.
            guard let host, let address = SocketAddress(numeric: host), !address.isUnspecified,
                let reason = machine.refusal(address)
            else { return nil }
            let own = machine.interfaces.flatMap(\.addresses).map(\.host).joined(separator: ", ")
            return fault(
                path, "cannot listen on \(host): \(reason); this machine has \(own.isEmpty ? "no address" : own)")
        }
    }

    /// Interfaces and networks matter if neither announced_addresses nor bind determines the announced addresses.
    private func interfaceFaults(_ machine: Machine) -> [ConfigurationFault] {
        guard media.advertisedAddresses.isEmpty, media.bindAddress == nil else { return [] }
        let filter = media.addressFilter
        let names = machine.interfaces.map(\.name)
        let unknown = filter.interfaces.filter { !$0.hasSuffix("*") && !names.contains($0) }
        guard unknown.isEmpty else {
            let has = "this machine has \(names.joined(separator: ", "))"
            return unknown.map { name in
                let hint = Spelling.nearest(to: name, among: names).map { "; did you mean '\($0)'?" } ?? ""
                return fault("media.interfaces", "there is no interface '\(name)' that is up; \(has)\(hint)")
            }
        }
        guard filter != AddressFilter(), filter.addresses(of: machine.interfaces).isEmpty else { return [] }
        let path = filter.networks.isEmpty ? "media.interfaces" : "media.networks"
        let has = machine.interfaces.flatMap { interface in
            interface.addresses.map { "\($0.host) on \(interface.name)" }
        }
        return [
            fault(
                path,
                "no address of this machine matches, so clients could not reach the media ports; it has "
                    + (has.isEmpty ? "none" : has.joined(separator: ", ")))
        ]
    }
}

extension SocketAddress {
    /// 0.0.0.0 or ::, which stand for all addresses.
    var isUnspecified: Bool { isIPv4 ? ipv4 == 0 : high == 0 && low == 0 }
    /// 224.0.0.0/4 or ff00::/8.
    fileprivate var isMulticast: Bool { isIPv4 ? ipv4 >> 28 == 0xe : high >> 56 == 0xff }
}
