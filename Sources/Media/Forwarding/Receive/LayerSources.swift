internal import MediaControl

/// How a layer's packets are identified: by its name, and by the SSRCs that the SDP or packets revealed.
struct LayerSources {
    /// The `a=rid` value, if the encoding has one.
    let rid: String?
    /// The same, as packets carry it; for a layer that was negotiated without a rid, the rid of its packets.
    private(set) var ridText: ShortText?
    /// The media SSRC; nil until it is known.
    private(set) var ssrc: UInt32?
    /// The SSRC of retransmissions.
    private(set) var rtxSSRC: UInt32?
    /// The SSRC of the previous source's retransmissions, until another replaces it: its packets may still arrive after the change.
    private var formerRTX: UInt32?

    init(_ encoding: EncodingDescription) {
        rid = encoding.rid
        ridText = encoding.rid.flatMap { ShortText($0) }
        ssrc = encoding.ssrc
        rtxSSRC = encoding.rtxSSRC
    }

    /// The SSRC that another one would replace.
    func replaced(isRTX: Bool) -> UInt32? { isRTX ? rtxSSRC ?? formerRTX : ssrc }

    /// Packets use this rid.
    mutating func rename(_ rid: ShortText) { ridText = rid }

    /// Retransmissions come with `ssrc` from now on.
    mutating func changeRTX(to ssrc: UInt32) {
        rtxSSRC = ssrc
        formerRTX = nil
    }

    /// Packets come with `ssrc` from now on; `isReplaced`: some came with another one.
    mutating func change(to ssrc: UInt32, isReplaced: Bool) {
        self.ssrc = ssrc
        guard isReplaced else { return }
        formerRTX = rtxSSRC ?? formerRTX
        rtxSSRC = nil
    }
}
