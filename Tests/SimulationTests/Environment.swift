import Glibc

/// What the environment asks of the scenarios.
enum Environment {
    /// MARTLET_SEED: play this seed.
    static let seed = number("MARTLET_SEED")
    /// MARTLET_ROUNDS: how many seeds a scenario of many seeds plays; the default keeps `swift test` short.
    static let rounds = number("MARTLET_ROUNDS").map { Int($0) }

    /// MARTLET_WORLDS: how many worlds of fifty rooms are played.
    static let worlds = number("MARTLET_WORLDS") ?? 1

    private static func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }
}
