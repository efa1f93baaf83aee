/// Finds the active speaker over time, from the level of each participant's recorded audio.
///
/// The result does not depend on whether the recording has other data about speakers: levels are measured in the audio itself.
struct SpeakerFinder {
    /// The beginning of a participant's turn.
    struct Turn: Hashable {
        /// In microseconds on the timeline.
        var start: Int64
        /// `PA_…`.
        var participant: String
    }

    /// The duration of a step, for which there is one level, in microseconds.
    static let step: Int64 = 200_000
    /// Steps over which a level is averaged: the duration of a word.
    private static let window = 4
    /// Nobody is shown for a shorter time.
    private static let shortestTurn = 10
    /// The threshold of speech, in decibels below full scale; and by how much louder a participant must be to take over.
    private static let (quietest, lead) = (-45.0, 6.0)

    /// Energy per step, from a participant's first step on.
    private struct Levels {
        var first: Int
        var energies: [Float]
    }

    private var levels: [String: Levels] = [:]
    /// In the order in which they came.
    private var participants: [String] = []

    /// Adds the energy (mean square of samples, 1 is full scale) of a participant at a time.
    mutating func add(_ energy: Double, of participant: String, at moment: Int64) {
        let index = Int(moment / Self.step)
        guard index >= 0, index < Self.mostSteps else { return }
        if levels[participant] == nil {
            levels[participant] = Levels(first: index, energies: [])
            participants.append(participant)
        }
        // Moved, not copied.
        guard var own = levels.removeValue(forKey: participant) else { return }
        defer { levels[participant] = own }
        if index < own.first {
            own.energies.insert(contentsOf: repeatElement(0, count: own.first - index), at: 0)
            own.first = index
        }
        let missing = index - own.first + 1 - own.energies.count
        if missing > 0 { own.energies.append(contentsOf: repeatElement(0, count: missing)) }
        own.energies[index - own.first] += Float(energy)
    }

    /// A week.
    private static let mostSteps = 3_024_000

    /// The active speakers, from the first moment of speech. Returns those found so far if `isOver`, which is called now and then.
    func turns(isOver: () -> Bool = { false }) -> [Turn] {
        let all = participants.compactMap { levels[$0] }
        let count = all.map { $0.first + $0.energies.count }.max() ?? 0
        var sums = [Double](repeating: 0, count: participants.count)
        var found: [Turn] = []
        var (current, since) = (-1, 0)
        for step in 0..<count {
            if step % 1_000 == 999, isOver() { break }
            var loudest = -1
            for index in all.indices {
                let own = all[index].energies, place = step - all[index].first
                if own.indices.contains(place) { sums[index] += Double(own[place]) }
                if own.indices.contains(place - Self.window) { sums[index] -= Double(own[place - Self.window]) }
                if loudest < 0 || sums[index] > sums[loudest] { loudest = index }
            }
            guard loudest >= 0, loudest != current, sums[loudest] > Self.threshold else { continue }
            let isLouder = current < 0 || sums[loudest] > max(0, sums[current]) * Self.factor
            guard isLouder, current < 0 || step - since >= Self.shortestTurn else { continue }
            (current, since) = (loudest, step)
            found.append(Turn(start: Int64(max(0, step - 1)) * Self.step, participant: participants[loudest]))
        }
        return found
    }

    private static let threshold = power(quietest) * Double(window)
    private static let factor = power(lead)

    /// 10 to the power of a tenth of `decibels`, without a maths library.
    private static func power(_ decibels: Double) -> Double {
        // Three decibels are a factor of two, within 0.3 %.
        var (rest, result) = (decibels, 1.0)
        while rest <= -3 { (rest, result) = (rest + 3, result / 1.995_262) }
        while rest >= 3 { (rest, result) = (rest - 3, result * 1.995_262) }
        return result
    }
}

/// Computes energies from samples in ffmpeg's output: 16 bits, little-endian, one channel, 8,000 per second.
struct EnergyMeter {
    static let sampleRate = 8_000
    private static let perStep = Int(SpeakerFinder.step) * sampleRate / 1_000_000
    private var low: UInt8?
    private var sum = 0.0
    private var count = 0
    /// The number of samples received.
    private(set) var samples: Int64 = 0

    /// Consumes output; `found` gets each step's energy and its beginning, in microseconds of the file.
    mutating func receive(_ bytes: some Sequence<UInt8>, found: (Double, Int64) -> Void) {
        for byte in bytes {
            guard let first = low else {
                low = byte
                continue
            }
            low = nil
            let sample = Double(Int16(bitPattern: UInt16(byte) << 8 | UInt16(first))) / 32_768
            sum += sample * sample
            count += 1
            samples += 1
            guard count == Self.perStep else { continue }
            found(sum / Double(count), (samples - Int64(count)) * 1_000_000 / Int64(Self.sampleRate))
            (sum, count) = (0, 0)
        }
    }
}
