/// Finds out who speaks when, by how loud each participant's recorded audio is.
///
/// The same for whoever was heard by the room as for a recording of which nothing else is known: levels are measured in the audio itself.
struct SpeakerFinder {
    /// From when on somebody speaks.
    struct Turn: Hashable {
        /// In microseconds on the timeline.
        var start: Int64
        /// `PA_…`.
        var participant: String
    }

    /// Microseconds of a step, for which there is one level.
    static let step: Int64 = 200_000
    /// Steps over which a level is averaged: a word.
    private static let window = 4
    /// Nobody is seen for a shorter time.
    private static let shortestTurn = 10
    /// Somebody speaks, in decibels below full scale; who takes over is louder by so much.
    private static let (quietest, lead) = (-45.0, 6.0)

    /// Energy per step, for each participant.
    private var energies: [String: [Double]] = [:]
    /// In the order in which they came.
    private var participants: [String] = []

    /// Adds the energy (mean square of samples, 1 is full scale) that a participant has at a moment.
    mutating func add(_ energy: Double, of participant: String, at moment: Int64) {
        let index = Int(moment / Self.step)
        guard index >= 0, index < Self.mostSteps else { return }
        if energies[participant] == nil {
            energies[participant] = []
            participants.append(participant)
        }
        let missing = index + 1 - (energies[participant]?.count ?? 0)
        if missing > 0 { energies[participant]?.append(contentsOf: repeatElement(0, count: missing)) }
        energies[participant]?[index] += energy
    }

    /// A week.
    private static let mostSteps = 3_024_000

    /// Who speaks, from the first moment at which anybody does.
    var turns: [Turn] {
        let count = energies.values.map(\.count).max() ?? 0
        var sums = [Double](repeating: 0, count: participants.count)
        var found: [Turn] = []
        var (current, since) = (-1, 0)
        for step in 0..<count {
            var loudest = -1
            for (index, participant) in participants.enumerated() {
                let levels = energies[participant] ?? []
                if step < levels.count { sums[index] += levels[step] }
                if step >= Self.window, step - Self.window < levels.count { sums[index] -= levels[step - Self.window] }
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

    /// 10 to the power of a tenth of `decibels`, without a library for it.
    private static func power(_ decibels: Double) -> Double {
        // Three decibels are a factor of two, within 0.3 %.
        var (rest, result) = (decibels, 1.0)
        while rest <= -3 { (rest, result) = (rest + 3, result / 1.995_262) }
        while rest >= 3 { (rest, result) = (rest - 3, result * 1.995_262) }
        return result
    }
}

/// Makes energies of samples as ffmpeg writes them: 16 bits, little-endian, one channel, 8,000 per second.
struct EnergyMeter {
    static let sampleRate = 8_000
    private static let perStep = Int(SpeakerFinder.step) * sampleRate / 1_000_000
    private var low: UInt8?
    private var sum = 0.0
    private var count = 0
    /// Samples that have come.
    private(set) var samples: Int64 = 0

    /// Takes what has come; `found` is given each step's energy and its beginning, in microseconds of the file.
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
