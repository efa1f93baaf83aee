/// What every scenario must keep, in one place. A figure that gets worse than its limit fails `make test`.
struct Limits: Sendable {
    /// Least share of what the link could carry (or of what is wanted, where that is less) that is used.
    var utilisation = 0.0
    /// Wait at the bottleneck, 95th percentile, milliseconds.
    var queueDelay = Double.infinity
    /// Share of datagrams dropped at the bottleneck (losses of the link itself do not count).
    var loss = 0.01
    /// The longest freeze in milliseconds, from the first picture on.
    var freeze = 700.0
    /// Seconds after the last change of the link until the right layer is shown.
    var rightLayer = Double.infinity
    /// Layer changes in any 5 s, from 5 s after the last change of the link on.
    var switches = 1
    /// The estimate as a share of the capacity, over the settled part; nil: not looked at.
    var estimate: ClosedRange<Double>?
}

enum Thresholds {
    static let steady = Limits(utilisation: 0.3, queueDelay: 60, freeze: 500, rightLayer: 5, estimate: 0.85...1.05)
    static let stepDown = Limits(utilisation: 0.3, loss: 0.10, freeze: 700, rightLayer: 1.5)
    /// A fall to a fraction of the link, at any moment: seconds frozen, as is aimed for, at most, and at most where the rate falls again and again, and changes of size
    /// for each change of the rate. With eight seeds 17 of 128 runs from 3 to 0.5 Mbit/s miss the aim, the worst with 0.69 s: with temporal layers the keyframe of the
    /// size in the middle is a quarter of a second of that link. Between 2.5 and 0.8 Mbit/s 2 of 80 miss it (0.53 s, one seed).
    static let fall = (aim: 0.5, freeze: 0.7, sawtooth: 0.6, changes: 2)
    static let stepUp = Limits(utilisation: 0.4, freeze: 500, rightLayer: 8)
    // The stream begins with a keyframe that takes 700 kbit/s a third of a second.
    static let stepUpOfFrames = Limits(utilisation: 0.9, queueDelay: 40, freeze: 1_500, switches: 0)
    static let ramp = Limits(utilisation: 0.3, loss: 0.05, freeze: 700, rightLayer: 8)
    static let randomLoss = Limits(utilisation: 0.8, loss: 0, freeze: 1_000, rightLayer: 8)
    static let bursts = Limits(utilisation: 0.5, loss: 0, freeze: 1_500)
    // Attempts at the largest layer lose half of it until they end: 3.5 to 5.9 % with eight seeds.
    static let policed = Limits(utilisation: 0.5, loss: 0.08, freeze: 1_000, switches: 2)
    /// Changes of size in 80 s: the first rises, and attempts 10, 20 and 40 s apart; 3 to 7 were seen (27 where each attempt was as good as the first).
    static let policedChanges = 8
    /// How often in two minutes a lone video is tried that a policer never lets through, and seconds in which it is sent: 4 to 6 and 10 to 14 were seen with
    /// eight seeds; all of them where each probe lifted the bound that losses set.
    static let policedAttempts = 8
    static let policedSeconds = 20
    static let jitter = Limits(utilisation: 0.5, loss: 0, freeze: 700)
    /// H4: delays of up to 200 ms more are no lack of bandwidth.
    static let jitterAlone = Limits(utilisation: 0.8, loss: 0, freeze: 700, rightLayer: 5)
    /// Share of the time in which the layer is shown meanwhile.
    static let layerKept = 1.0
    static let jitterBegins = Limits(utilisation: 0.8, loss: 0.005, freeze: 700, rightLayer: 5)
    /// What came late is asked for again at once by the virtual viewer, and fills the link besides: freezes of 0.7 to 1.2 s were seen with eight seeds.
    static let stepDownInJitter = Limits(utilisation: 0.3, loss: 0.05, freeze: 1_500, rightLayer: 3, switches: 2)
    static let clean = Limits(utilisation: 0.9, loss: 0, freeze: 500, rightLayer: 3, switches: 1)
    static let hiccup = Limits(utilisation: 0.8, loss: 0.10, freeze: 5_000, rightLayer: 4, switches: 1)
    /// As the row of this name in LoadTests/Links/cases.py.
    static let modest = Limits(utilisation: 0.5, loss: 0.01, freeze: 500, rightLayer: 3, switches: 1 + modestChanges)
    /// Beside the first size, which is no change.
    static let modestChanges = 1
    /// The freeze is what follows the standstill itself. The right layer came after 0.3 to 0.5 s with eight seeds.
    static let stall = Limits(utilisation: 0.8, loss: 0.10, freeze: 2_000, rightLayer: 4, switches: 1)
    static let outage = Limits(utilisation: 0.3, loss: 0.02, freeze: 5_000, rightLayer: 8)
    /// Seconds until the largest layer is back after whatever happened to a link: 10.6 at worst in 480 runs, 1.6 in the middle, where it is as before; 16.0 where
    /// it stays longer, because what hid that moment lets it pass for a queue until the floor of 10 to 20 s is another one.
    static let recovery = 20.0
    static let farther = Limits(utilisation: 0.8, loss: 0.02, freeze: 3_500, rightLayer: 8)
    // The queue is the TCP flow's: 1.2 to 3.6 % lost with CUBIC, 0.3 to 0.6 % with NewReno, 1.6 s frozen at most (1.5 are wanted) and two changes in 5 s with eight seeds.
    static let crossTraffic = Limits(loss: 0.04, freeze: 2_000, switches: 2)
    /// Least share of the link for two videos, and for the TCP flow beside them: 23 to 37 % and 62 to 76 % were seen with eight seeds.
    static let fairShare = 0.2
    static let mobile = Limits(utilisation: 0.3, loss: 0.01, freeze: 500, switches: 4)
    static let tenMinutes = Limits(utilisation: 0.4, queueDelay: 60, freeze: 500, switches: 0)
    /// How often all frames are tried in these ten minutes: 9 times were seen. It was 7, and 6 were seen, while a step that had failed was remembered for two minutes, which
    /// kept a camera that came back from mute beside a screen one size below for as long.
    static let attempts = 10
    static let stalls = Limits(utilisation: 0.8, loss: 0.01, freeze: 500, switches: 1)
    static let dips = Limits(utilisation: 0.3, loss: 0.08, freeze: 1_000, switches: 6)
    static let screen = Limits(queueDelay: 120, loss: 0.01, freeze: 3_000)
    // A picture each two seconds; a keyframe may be lost.
    static let stillScreen = Limits(utilisation: 0.3, queueDelay: 200, loss: 0, freeze: 6_000)
    // Padding between pictures instead of repeats; a lost link of 50 kbit/s keeps its queue for a while.
    static let withoutRTX = Limits(utilisation: 0.3, loss: 0.05, freeze: 35_000, rightLayer: 8, switches: 2)
    static let shared = Limits(utilisation: 0.4, queueDelay: 100, loss: 0.02, freeze: 1_000, switches: 2)
    // Several estimators on one queue still take turns; the row on fairness is not reached.
    static let bottleneck = Limits(utilisation: 0.1, queueDelay: 250, loss: 0.03, freeze: 2_000, switches: 6)
    // The receiver says no more than one and a half times what it gets: after a fall layers come back one by one.
    static let receiverEstimate = Limits(utilisation: 0.2, loss: 0.05, freeze: 1_000, switches: 2)
    // Each such keyframe is a quarter of a second of the link: the layer whose keyframes do not fit is left alone after a few attempts.
    // 50 to 64 ms of queue were seen with eight seeds, 0.33 to 0.37 s frozen, two changes in 5 s.
    static let keyframes = Limits(utilisation: 0.35, queueDelay: 100, loss: 0.01, freeze: 600, switches: 2)
    // Nine cameras, or a few, behind one link: 31 to 58 ms and freezes of up to 0.51 s were seen with eight seeds, two changes in 5 s at most.
    static let room = Limits(utilisation: 0.6, queueDelay: 80, loss: 0.01, switches: 2)
    // Twenty-five cameras in phase are 70 ms of the link by themselves; 71 to 99 ms and freezes of 0.46 to 0.48 s were seen with eight seeds.
    static let bigRoom = Limits(utilisation: 0.7, queueDelay: 120, loss: 0.01, switches: 2)
}
