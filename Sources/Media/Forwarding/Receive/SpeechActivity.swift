internal import Glibc

/// Speech activity scores of one track at one moment, over three intervals:
/// I. Volfin and I. Cohen, "Dominant speaker identification for multipoint videoconferencing", IEEE 27th Convention of
/// Electrical and Electronics Engineers in Israel, 2012 (Computer Speech and Language 27(4), 2013), in the discrete form
/// that Jitsi uses (DominantSpeakerIdentification.java).
///
/// ```text
///  immediate   20 ms   loudness in 13 steps; less than one step above the noise floor counts as silence
///  medium     100 ms   how many of 5 immediates are above step 7
///  long         1 s    how many of 10 mediums are full
///  score       log( B(N, v) p^v (1-p)^(N-v) / (lambda e^(-lambda v)) ), p = 0.5: likelihood of speech against silence
/// ```
struct SpeechActivity: Sendable {
    var immediate: Double
    var medium: Double
    var long: Double

    static let immediateSteps = 13
    static let stepSize: UInt8 = 10
    static let mediumThreshold: UInt8 = 7
    static let immediatesAMedium = 5
    static let mediumsALong = 10
    /// The minimum score; silence has it in all three intervals.
    static let least = 1e-10
    static let silence = SpeechActivity(immediate: least, medium: least, long: least)

    private static let immediateScores = scores(steps: immediateSteps, lambda: 0.78)
    private static let mediumScores = scores(steps: immediatesAMedium, lambda: 24)
    private static let longScores = scores(steps: mediumsALong, lambda: 47)

    init(immediate: Double, medium: Double, long: Double) {
        self.immediate = immediate
        self.medium = medium
        self.long = long
    }

    init(_ window: AudioLevelWindow) {
        let threshold = window.floor.level + Self.stepSize
        func step(_ slot: Int) -> UInt8 {
            let loudness = window.loudness(slot)
            return loudness < threshold ? 0 : loudness / Self.stepSize
        }
        var fullMediums = 0, newestMedium = 0
        for medium in 0..<Self.mediumsALong {
            var active = 0
            for slot in 0..<Self.immediatesAMedium
            where step(medium * Self.immediatesAMedium + slot) > Self.mediumThreshold {
                active += 1
            }
            if medium == 0 { newestMedium = active }
            if active == Self.immediatesAMedium { fullMediums += 1 }
        }
        immediate = Self.immediateScores[Int(step(0))]
        medium = Self.mediumScores[newestMedium]
        long = Self.longScores[fullMediums]
    }

    /// How much more active than `other`, as log ratios.
    func relative(to other: SpeechActivity) -> SpeechActivity {
        SpeechActivity(
            immediate: log(immediate / other.immediate), medium: log(medium / other.medium),
            long: log(long / other.long))
    }

    /// The score of every count from 0 to `steps`.
    private static func scores(steps: Int, lambda: Double) -> [Double] {
        (0...steps).map { count in
            var logBinomial = 0.0
            for term in 0..<count { logBinomial += log(Double(steps - term)) - log(Double(term + 1)) }
            let score = logBinomial + Double(steps) * log(0.5) - log(lambda) + lambda * Double(count)
            return max(score, least)
        }
    }
}
