import Cryptography
import HTTPServing
import MediaWorkers
import Primitives

/// Explains why the server does not start: what is wrong, where, and what to do about it.
extension Configuration {
    /// One of the two listeners.
    enum WhichListener: Sendable {
        case publicOne, privateOne
    }

    func explain(_ error: HTTPServerError, _ which: WhichListener) -> String {
        let (section, listener) = which == .publicOne ? ("http", http) : ("private", privateListener)
        switch error {
        case .invalidAddress(let host):
            return "\(section).bind: '\(host)' is not an IPv4 or IPv6 address"
        case .invalidCertificate(let words):
            let files = "\(tlsCertificatePath ?? "no certificate"), \(tlsKeyPath ?? "no key")"
            return "http.tls: the certificate or its key cannot be used (\(files)): \(words)"
        case .cannotListen(let words):
            let host = listener.host.contains(":") ? "[\(listener.host)]" : listener.host
            let advice = "stop the process that uses the port, or choose another \(section).port"
            return "cannot listen on \(host):\(listener.port): \(words); \(advice)"
        case .alreadyStarted:
            return "the \(section) listener has already been started"
        }
    }

    func explain(_ error: any Error) -> String {
        switch error {
        case MediaWorkerError.system(let index, let cause):
            let host = media.bindAddress?.host ?? "all addresses"
            let port =
                media.udpBasePort == 0
                ? "a UDP port chosen by the system" : "UDP port \(Int(media.udpBasePort) + index)"
            return
                "media worker \(index) cannot use \(port) on \(host): \(cause); stop the process that uses the port, or choose another media.udp_port or media.bind"
        case MediaWorkerError.tcp(let index?, let port, let cause):
            return
                "media worker \(index) cannot listen on TCP port \(port): \(cause); stop the process that uses it, choose another media.udp_port, or set media.tcp to false"
        case MediaWorkerError.tcp(nil, let port, let cause):
            return "cannot listen on the shared TCP port \(port): \(cause); see media.tcp_port"
        case MediaWorkerError.noPort(let index):
            return "media worker \(index) has no port: media.udp_port \(media.udpBasePort) plus \(index) is above 65535"
        case MediaWorkerError.certificate(let cause), let cause as CryptographyError:
            return "cannot create the DTLS certificate: \(cause)"
        default:
            return "cannot start the media workers: \(error)"
        }
    }
}
