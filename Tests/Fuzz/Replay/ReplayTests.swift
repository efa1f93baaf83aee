import Foundation
import Primitives
import TestSupport
import Testing

/// Every fuzz target over its seeds, over the inputs that once broke it, and over mutations of both that follow from a seed.
@Suite("Fuzzing corpus", .serialized)
struct ReplayTests {
    static let targets = FuzzTarget.all + [.configuration]
    static let names = targets.map(\.name)

    /// `MARTLET_FUZZ_SEED=7 swift test --filter FuzzTests` tries other mutations.
    static let seed = ProcessInfo.processInfo.environment["MARTLET_FUZZ_SEED"].flatMap { UInt64($0) } ?? 1
    /// How many mutations of each input; the whole suite stays below ten seconds.
    static let mutations = ProcessInfo.processInfo.environment["MARTLET_FUZZ_MUTATIONS"].flatMap { Int($0) } ?? 4

    @Test("L1: the seed corpus, past findings and mutations of them violate no invariant", arguments: names)
    func replay(_ name: String) async throws {
        let target = try #require(Self.targets.first { $0.name == name })
        // On a thread of its own: seconds of work would keep tests that wait for each other from their threads.
        let outcome = await withCheckedContinuation { continuation in
            let thread = Thread { continuation.resume(returning: Result { try Self.replay(target) }) }
            thread.stackSize = 8 << 20
            thread.start()
        }
        #expect(try outcome.get() > 0)
    }

    @Test("Captured media is forwarded: the engine's seeds reach its send path")
    func reach() throws {
        let room = try FuzzRoom()
        for seed in try Seeds.engine() { seed.withUnsafeBytes { EngineTarget.run($0, in: room) } }
        #expect(room.forwarded > 100)
    }

    /// The number of inputs.
    private static func replay(_ target: FuzzTarget) throws -> Int {
        let name = target.name
        let run = try target.start()
        let inputs = try target.seeds() + kept(name)
        // Told before it runs: a trap ends the process.
        print("\(name): \(inputs.count) inputs, mutated \(mutations) times each from seed \(seed)")
        var mutator = Mutator(seed: seed, dictionary: inputs)
        for input in inputs {
            input.withUnsafeBytes(run)
            for _ in 0..<mutations { mutator.mutate(input).withUnsafeBytes(run) }
        }
        [UInt8]().withUnsafeBytes(run)
        return inputs.count
    }

    /// Inputs that `make fuzz` found, in Tests/Fuzz/Corpus.
    private static func kept(_ name: String) throws -> [[UInt8]] {
        let folder = Vectors.root.deletingLastPathComponent().appendingPathComponent("Fuzz/Corpus/\(name)")
        guard let files = try? FileManager.default.contentsOfDirectory(atPath: folder.path) else { return [] }
        return try files.sorted().map { [UInt8](try Data(contentsOf: folder.appendingPathComponent($0))) }
    }
}

/// What libFuzzer does to inputs, in a small way and always the same from one seed.
struct Mutator {
    private var random: RandomSource
    private let dictionary: [[UInt8]]

    init(seed: UInt64, dictionary: [[UInt8]]) {
        random = RandomSource(seed: seed)
        self.dictionary = dictionary
    }

    mutating func mutate(_ input: [UInt8]) -> [UInt8] {
        var bytes = input
        for _ in 0...Int.random(in: 0...3, using: &random) { change(&bytes) }
        return bytes
    }

    private mutating func change(_ bytes: inout [UInt8]) {
        guard !bytes.isEmpty else { return bytes.append(UInt8.random(in: 0...255, using: &random)) }
        let place = Int.random(in: 0..<bytes.count, using: &random)
        let end = min(bytes.count, place + Int.random(in: 1...32, using: &random))
        switch Int.random(in: 0..<8, using: &random) {
        case 0: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1: bytes[place] = [0, 1, 0x7f, 0x80, 0xff].randomElement(using: &random) ?? 0
        case 2: bytes[place] = UInt8.random(in: 0...255, using: &random)
        case 3: bytes.removeSubrange(place..<end)
        case 4: bytes.insert(contentsOf: bytes[place..<end], at: place)
        case 5: bytes.removeSubrange(place...)
        case 6: for index in place..<end { bytes[index] = 0xff }
        default:
            let other = dictionary.randomElement(using: &random) ?? []
            bytes.replaceSubrange(place..., with: other.suffix(from: min(place, other.count)))
        }
    }
}
