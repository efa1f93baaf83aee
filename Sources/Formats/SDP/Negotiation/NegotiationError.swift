/// Why a description was refused, and where. Nothing has changed in the negotiation when this is thrown.
public struct NegotiationError: Error, Sendable, Hashable {
    /// What is wrong. `rawValue` is the stable word of protocols and logs.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        // Text.
        case tooLong = "sdp_too_long"
        case tooManyLines = "sdp_too_many_lines"
        case lineTooLong = "sdp_line_too_long"
        case tooManySections = "sdp_too_many_sections"
        case malformedLine = "sdp_malformed_line"
        case unsupportedVersion = "sdp_unsupported_version"
        case malformedSection = "sdp_malformed_media_line"
        // Structure.
        case noSections = "sdp_no_media"
        case invalidMid = "sdp_invalid_mid"
        case duplicateMid = "sdp_duplicate_mid"
        case sectionRemoved = "sdp_section_removed"
        case sectionReplaced = "sdp_section_replaced"
        case sectionsMismatch = "sdp_answer_sections_mismatch"
        /// Several tracks in one m-section, distinguished only by SSRC.
        case planB = "sdp_plan_b_unsupported"
        // Transport.
        case rtcpMuxRequired = "sdp_rtcp_mux_required"
        case missingICECredentials = "sdp_missing_ice_credentials"
        case invalidICECredentials = "sdp_invalid_ice_credentials"
        /// Neither DTLS-SRTP nor data channels in any section.
        case unsupportedProtocol = "sdp_unsupported_protocol"
        /// An answer that splits what was offered as one bundle.
        case bundleRequired = "sdp_bundle_required"
        case iceLitePeer = "sdp_ice_lite_peer"
        /// Keys in the SDP (RFC 4568) instead of DTLS.
        case sdesUnsupported = "sdp_sdes_unsupported"
        case missingFingerprint = "sdp_missing_fingerprint"
        /// Fingerprints, but none made with SHA-256.
        case weakFingerprint = "sdp_fingerprint_not_sha256"
        case malformedFingerprint = "sdp_malformed_fingerprint"
        case fingerprintChanged = "sdp_fingerprint_changed"
        case invalidSetup = "sdp_invalid_setup"
        case setupChanged = "sdp_setup_changed"
        // Order of offers and answers.
        /// An offer arrived while the server's own waits for its answer: the remote must yield.
        case glare = "offer_collision"
        case noPendingOffer = "no_pending_offer"
        case offerPending = "offer_pending"
        case newICECredentialsRequired = "new_ice_credentials_required"
        case unknownMid = "unknown_mid"
        case tooManyOwnSections = "too_many_sections"
    }

    /// Where it is wrong.
    public enum Place: Sendable, Hashable {
        case session
        /// Line of the text, counted from 1.
        case line(Int)
        /// The index of the m-section, and its mid if it has one.
        case section(Int, mid: String?)
        /// A mid that the caller named.
        case mid(String)
    }

    public var code: Code
    public var place: Place

    /// An error at a place.
    public init(_ code: Code, _ place: Place = .session) {
        self.code = code
        self.place = place
    }
}

extension NegotiationError: CustomStringConvertible {
    public var description: String {
        switch place {
        case .session: code.rawValue
        case .line(let number): "\(code.rawValue) (line \(number))"
        case .mid(let mid): "\(code.rawValue) (mid \(mid))"
        case .section(let index, let mid): "\(code.rawValue) (m-section \(index)\(mid.map { ", mid \($0)" } ?? ""))"
        }
    }
}
