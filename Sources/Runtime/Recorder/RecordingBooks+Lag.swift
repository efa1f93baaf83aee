import Glibc
import NetworkIO
import Primitives

// Whoever works on files beside the recorder gives way to it: its disk is theirs.

extension RecordingBooks {
    /// The recorder is behind when packets waited so long: its disk is busy.
    private static let longestLag = TimeInterval.milliseconds(500)
    /// In microseconds.
    private static let pause: useconds_t = 200_000

    /// Whether the recorder does not keep up.
    var isBehind: Bool { recorderLag.value(at: MonotonicClock.now()) > Self.longestLag }

    /// Returns when the recorder keeps up; false: the work in hand is to be left, as `mustStop` says. Blocks.
    func waitForRecorder(unless mustStop: () -> Bool) -> Bool {
        while !mustStop() {
            guard isBehind else { return true }
            usleep(Self.pause)
        }
        return false
    }
}
