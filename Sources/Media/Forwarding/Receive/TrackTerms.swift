internal import MediaControl
internal import Primitives

/// What was negotiated for a track, with the parts that packets need in flat form.
struct TrackTerms {
    /// The latest description from the control plane.
    private(set) var description: TrackDescription
    private(set) var mid: ShortText?
    private(set) var repair = LossRepair.none
    private(set) var formats = TrackFormats()

    init(_ description: TrackDescription) {
        self.description = description
        apply(description)
    }

    /// Applies renegotiated formats, extensions or feedback.
    mutating func apply(_ description: TrackDescription) {
        self.description = description
        mid = ShortText(description.mid)
        repair =
            description.feedback.contains(.nack) ? .retransmission : (description.kind == .video ? .keyframe : .none)
        formats.apply(description.formats)
    }

    mutating func setMaximumBitrate(_ bitrate: Bitrate?) { description.maximumBitrate = bitrate }
}

/// How lost packets of a track are repaired.
enum LossRepair {
    /// Audio continues without them.
    case none
    /// The sender retransmits nothing: without a keyframe, subscribers would wait for packets that cannot arrive.
    case keyframe
    /// They are requested again, and a keyframe if that is in vain.
    case retransmission
}

/// The formats of a track by payload type.
struct TrackFormats {
    /// The meaning of a payload type; formats by their index in the description.
    enum Meaning {
        case unknown
        case media(UInt8)
        /// Retransmissions of a format (RFC 4588).
        case retransmissions(UInt8)
    }

    /// Maximum number of formats distinguished; a section lists fewer once it is answered.
    private static let maximum = 32
    private static let unknown: UInt8 = 0xff
    private static let rtxBit: UInt8 = 0x80

    /// Index of the format, with `rtxBit` for retransmissions.
    private var places = InlineArray<128, UInt8>(repeating: TrackFormats.unknown)
    private var codecs = InlineArray<32, Codec>(repeating: .otherAudio)
    private var clockRates = InlineArray<32, Int64>(repeating: 90_000)

    /// Packets have these formats from now on; those of stored packets stay known.
    mutating func apply(_ formats: [PayloadFormat]) {
        places = InlineArray(repeating: Self.unknown)
        for (index, format) in formats.enumerated() where index < Self.maximum {
            places[Int(format.payloadType & 0x7f)] = UInt8(index)
            if let rtx = format.rtxPayloadType { places[Int(rtx & 0x7f)] = UInt8(index) | Self.rtxBit }
            codecs[index] = format.codec
            clockRates[index] = Int64(max(format.clockRateHz, 1))
        }
    }

    /// The meaning of `payloadType`.
    @inline(__always) subscript(payloadType: UInt8) -> Meaning {
        let place = places[Int(payloadType & 0x7f)]
        guard place & Self.rtxBit != 0 else { return .media(place) }
        return place == Self.unknown ? .unknown : .retransmissions(place & ~Self.rtxBit)
    }

    @inline(__always) func codec(of format: UInt8) -> Codec { codecs[Int(format)] }
    @inline(__always) func clockRate(of format: UInt8) -> Int64 { clockRates[Int(format)] }
}
