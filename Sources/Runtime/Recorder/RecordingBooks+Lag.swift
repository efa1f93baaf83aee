import Glibc
import NetworkIO
import Primitives

// Work on files gives way to the recorder: both share its disk.

extension RecordingBooks {
    /// The recorder lags when packets have waited this long: its disk is busy.
    private static let longestLag = TimeSpan.milliseconds(500)
    /// In microseconds.
    private static let pause: useconds_t = 200_000

    /// Whether the recorder does not keep up.
    var isBehind: Bool { recorderLag.value(at: MonotonicClock.now()) > Self.longestLag }

    /// Returns when the recorder keeps up; false: the current work is to be abandoned, because `mustStop` says so. Blocks.
    func waitForRecorder(unless mustStop: () -> Bool) -> Bool {
        while !mustStop() {
            guard isBehind else { return true }
            usleep(Self.pause)
        }
        return false
    }
}
