import Player
import Primitives

extension MetricsPage {
    /// What the player does.
    mutating func add(player: PlayerStatistics) {
        add("playbacks", .gauge, "Files that are being played into rooms, paused ones too.", player.playbacks)
        add("playback_packets_sent_total", .counter, "Packets of played files.", player.packetsSent)
        add(
            "playback_packets_late_total", .counter, "Packets of played files that left more than 20 ms late.",
            player.packetsLate)
        add(
            "playback_failures_total", .counter, "Playbacks that ended because their file could not be read.",
            player.failures)
    }
}
