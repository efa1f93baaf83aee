import MediaControl
import Primitives
import SDP

/// How to answer those sections of a client's offer on which it may send: which of them publish a track, in which codecs, and which do not because a limit is
/// reached.
struct PublishingAnswers {
    /// By mid, for all media sections that are not refused as a whole.
    private(set) var sections: [String: SectionAnswer] = [:]
    /// Sections that are answered without their track, because the participant has reached its limit of tracks, or has begun too many, or the room has reached
    /// its limit of publishers.
    private(set) var refused: [(section: OfferedSection, code: RoomError.Code)] = []
    /// Including the new ones of this offer.
    private var trackCount: Int
    /// Tracks are charged when they are made: this count is discarded.
    private var budgets: Member.Budgets

    /// Throws if the offer is refused as a whole.
    init(
        to offer: OfferOutcome, on connection: String, of member: Member, _ state: RoomState, at now: MonotonicTime
    ) throws(RoomError) {
        trackCount = state.routing.encodings(of: member.session).count
        budgets = member.budgets
        // Other connections have sections with the same names.
        let known = member.connectionIndex(connection).map { member.connections[$0].trackByMid } ?? [:]
        for section in offer.sections where section.refusal == nil {
            guard let kind = MediaKind(section.kind) else { continue }
            var answer = SectionAnswer()
            answer.rejects = kind == .video && state.policy.audioOnly
            if let sends = section.remoteSends, !answer.rejects {
                let track = known[section.mid]
                answer.carry(kind, as: Terms(sends, kind, section.mid, of: track, member, state), state)
                answer.receives =
                    member.profile != .viewer
                    && state.permittedSource(kind, sends, mid: section.mid, of: connection, member) != nil
                if answer.receives, track == nil, let code = try refusal(of: member, state, at: now) {
                    answer.receives = false
                    refused.append((section, code))
                }
                if answer.receives, track == nil { trackCount += 1 }
                if kind == .video { answer.maximumBitrate = state.negotiatedCap(of: member) }
            }
            sections[section.mid] = answer
        }
    }

    /// Why the member may publish no further track. If the limit of publishers is reached, the offer is refused as a whole, but not for a
    /// client whose protocol has no message for a refused offer, and which treats it as the end of the call.
    private mutating func refusal(
        of member: Member, _ state: RoomState, at now: MonotonicTime
    ) throws(RoomError) -> RoomError.Code? {
        do throws(RoomError) {
            try state.checkPublisherLimit(member)
        } catch {
            guard member.options.recovery == .byJoining else { throw error }
            return error.code
        }
        let limits = state.context.limits
        guard trackCount < limits.tracksPerParticipant else { return .limitExceeded }
        do throws(RoomError) {
            try budgets.charge(.publication, to: state.roster.count, limits, at: now)
            return nil
        } catch { return error.code }
    }
}

/// The publisher's announcement of a section's track. LiveKit's clients state there, and not in their offers, whether the track is stereo and may use DTX: they
/// encode, and others decode, in mono and without DTX unless the server's descriptions state it.
private struct Terms {
    /// nil: as the offer prefers.
    let codec: Codec?
    let details: TrackDetails?

    /// `track`: the track that is already on the section.
    init(
        _ sending: RemoteSending, _ kind: MediaKind, _ mid: String, of track: TrackID?, _ member: Member,
        _ state: RoomState
    ) {
        if let track {
            let known = state.routing[track]
            codec = known?.preferredCodec
            details = known?.info.details
        } else {
            let announced = member.announcements.find(sending.trackID, mid, kind)?.announcement
            codec = announced?.codecs.first
            details = announced?.details
        }
    }
}

extension SectionAnswer {
    /// The section is to carry what was announced, within what the room allows.
    fileprivate mutating func carry(_ kind: MediaKind, as terms: Terms, _ state: RoomState) {
        // Any other codec if the announced one is not in the offer.
        if let names = terms.codec?.names {
            let allowed = state.negotiationRules.codecs(for: kind.sectionKind).allowed
            codecs = allowed.filter(names.contains) + allowed.filter { !names.contains($0) }
        }
        guard kind == .audio, let details = terms.details else { return }
        takesStereo = details.isStereo
        asksForDTX = details.usesDTX
        // A publisher that sends no RED, even if the room prefers it: nobody could separate the blocks of what it encrypts end to end.
        if details.disablesRED {
            let others = (codecs ?? state.negotiationRules.audio.allowed).filter { $0 != .red }
            if !others.isEmpty { codecs = others }
        }
    }
}
