public import Cryptography
internal import DTLS
internal import ICE
public import SRTP

/// What simulated clients share: certificate, OpenSSL context, STUN agent. Clients of one kind share one.
public final class ClientContext {
    /// The certificate that the clients present.
    public let certificate: Certificate
    let dtls: DTLSContext
    let stun: STUNAgent

    /// What Chromium offers, in its order.
    public static let chromiumProfiles = "SRTP_AES128_CM_SHA1_80:SRTP_AEAD_AES_256_GCM:SRTP_AEAD_AES_128_GCM"

    /// Why clients cannot be made.
    public enum Failure: Error {
        case cryptography(CryptographyError)
        case srtp(SRTPLibrary.StartError)
    }

    /// `profiles` in OpenSSL's form, for example "SRTP_AES128_CM_SHA1_80" for a client without GCM.
    public init(
        certificate: Certificate, profiles: String = ClientContext.chromiumProfiles,
        maximumDatagram: Int = 1_200
    ) throws(Failure) {
        do { try SRTPLibrary.start() } catch { throw .srtp(error) }
        do {
            dtls = try DTLSContext(certificate: certificate, maximumDatagram: maximumDatagram, profiles: profiles)
        } catch { throw .cryptography(error) }
        self.certificate = certificate
        stun = STUNAgent(tieBreaker: 0x1234_5678_9abc_def0)
    }
}
