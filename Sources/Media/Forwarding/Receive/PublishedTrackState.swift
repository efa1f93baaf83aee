internal import MediaControl
internal import Primitives

/// The state of a track besides its layers, behind a pointer: as properties of the class each access would cost an exclusivity check,
/// together a third of the time to ingest a packet (measured).
struct PublishedTrackState: ~Copyable {
    /// Maximum number of formats distinguished; a section lists fewer once it is answered.
    static let maximumFormats = 32
    static let noFormat: UInt8 = 0xff
    static let rtxBit: UInt8 = 0x80

    var description: TrackDescription
    var format: PayloadFormat?
    var tag = 0
    var isMuted = false
    var isSilent = false
    var hasStarted = false
    /// The payload type of `format`.
    var payloadType: UInt8 = 0
    var asksForRepair = false
    var mid: ShortText?
    var levels = AudioLevelWindow()
    /// Where this turn's packets begin for new listeners, see `PublishedTrack.speechStart`; `.max`: at the first of them.
    var speechStart = Int64.max
    var arrivals = ArrivalList()
    var announced = AnnouncedLayers()
    /// The uplink's schedule, which sets it.
    var schedule: FeedbackSchedule?
    /// payload type -> index into `description.formats`, with `rtxBit` for retransmissions; `noFormat` for unknown ones.
    var formats = InlineArray<128, UInt8>(repeating: PublishedTrackState.noFormat)
    var codecs = InlineArray<32, Codec>(repeating: .otherAudio)
    var clockRates = InlineArray<32, Int64>(repeating: 90_000)

    init(description: TrackDescription) {
        self.description = description
        describe(description)
    }

    mutating func describe(_ description: TrackDescription) {
        self.description = description
        mid = ShortText(description.mid)
        asksForRepair = description.feedback.contains(.nack)
        formats = InlineArray(repeating: Self.noFormat)
        for (index, format) in description.formats.enumerated() where index < Self.maximumFormats {
            formats[Int(format.payloadType & 0x7f)] = UInt8(index)
            if let rtx = format.rtxPayloadType { formats[Int(rtx & 0x7f)] = UInt8(index) | Self.rtxBit }
            codecs[index] = format.codec
            clockRates[index] = Int64(max(format.clockRateHz, 1))
        }
    }
}
