public import Cryptography
internal import DTLS
internal import DataChannels
internal import ICE
public import MediaControl
public import Primitives
public import SRTP

/// Limits and settings for all peers of a worker.
public struct TransportSettings: Sendable, Hashable {
    /// A peer without a sign of life for this long is disconnected (RFC 7675 section 5.1 allows 30 s at most).
    public var consentTimeout = TimeSpan.seconds(15)
    /// A peer that has not finished ICE this long after its description was set is removed.
    public var setupTimeout = TimeSpan.seconds(30)
    /// A DTLS handshake that has not finished this long after the first selected tuple is aborted.
    public var handshakeTimeout = TimeSpan.seconds(30)
    /// The largest DTLS datagram sent.
    public var maximumDatagram = 1_200
    /// For peers with data channels.
    public var data = DataLimits()

    public init() {}
}

/// Why a worker's transport cannot start.
public enum TransportError: Error, Sendable, Hashable {
    case cryptography(CryptographyError)
    case srtp(SRTPLibrary.StartError)
}

/// State shared by all peers of one worker: certificate, OpenSSL context, STUN agent, settings. One per worker; not
/// Sendable.
public final class TransportContext {
    /// The certificate presented to peers.
    public let certificate: Certificate
    /// Limits and settings.
    public let settings: TransportSettings
    /// Why handshakes failed, for the metrics.
    public internal(set) var handshakeFailures: [HandshakeFailure: UInt64] = [:]
    let dtls: DTLSContext
    let stun: STUNAgent
    /// A packet of SCTP before DTLS encrypts it.
    let packet = UnsafeMutableRawBufferPointer.allocate(byteCount: DataChannelSession.largestPacket, alignment: 16)
    /// Determines the jitter of consent checks.
    var random: RandomSource

    /// Loads the certificate and checks that SRTP works; `seed` determines jitter. Secrets and STUN transaction ids come
    /// from the libraries' own generators.
    public init(certificate: Certificate, settings: TransportSettings = .init(), seed: UInt64) throws(TransportError) {
        do {
            try SRTPLibrary.start()
        } catch {
            throw .srtp(error)
        }
        do {
            dtls = try DTLSContext(certificate: certificate, maximumDatagram: settings.maximumDatagram)
        } catch {
            throw .cryptography(error)
        }
        var random = RandomSource(seed: seed)
        stun = STUNAgent(tieBreaker: random.next())
        self.random = random
        self.certificate = certificate
        self.settings = settings
    }

    deinit { packet.deallocate() }

    /// The implementations of AES-128 GCM, for the log: for forwarded packets, and for everything that libsrtp2 handles.
    public static var cipherDescriptions: (forwarded: String, other: String) {
        (SRTPLibrary.senderDescription, SRTPLibrary.cipherDescription)
    }

    var iceSettings: ICESettings {
        var ice = ICESettings()
        ice.consentTimeout = settings.consentTimeout
        ice.setupTimeout = settings.setupTimeout
        return ice
    }
}
