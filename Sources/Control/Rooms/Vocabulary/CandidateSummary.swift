public import SDP

/// Counts of one side's ICE candidates, without their addresses: they show operators why no check arrived.
public struct CandidateSummary: Sendable, Hashable {
    /// Over UDP, by type.
    private var host = 0
    private var reflexive = 0
    private var relayed = 0
    /// Behind a `.local` name, which no server can resolve.
    private var multicastDNS = 0
    /// Over TCP, whatever their type.
    private var tcp = 0

    /// The candidates of a description, or none.
    public init(_ candidates: [Candidate] = []) {
        for candidate in candidates { add(candidate) }
    }

    /// Counts one more candidate, by its most important property.
    public mutating func add(_ candidate: Candidate) {
        if candidate.transport == .tcp {
            tcp += 1
        } else if candidate.isMulticastDNS {
            multicastDNS += 1
        } else {
            switch candidate.kind {
            case .host: host += 1
            case .srflx, .prflx: reflexive += 1
            case .relay: relayed += 1
            }
        }
    }

    /// "2 host, 1 mDNS"; "none" if there are none.
    public var text: String {
        let counts = [
            (host, "host"), (reflexive, "reflexive"), (relayed, "relayed"), (multicastDNS, "mDNS"), (tcp, "TCP"),
        ]
        let words = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return words.isEmpty ? "none" : words.joined(separator: ", ")
    }
}
