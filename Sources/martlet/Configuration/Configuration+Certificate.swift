import Cryptography

/// The public listener's certificate and key: read and compared before anything is opened.
extension Configuration {
    /// Certificate chains are a few kilobytes.
    private static let maximumBytes = 1 << 20

    var tlsFaults: [ConfigurationFault] {
        var faults: [ConfigurationFault] = []
        if tlsCertificatePath != nil, tlsKeyPath == nil {
            faults.append(fault("http.tls.certificate", "a certificate needs its key; also set http.tls.key"))
        }
        if tlsKeyPath != nil, tlsCertificatePath == nil {
            faults.append(fault("http.tls.key", "a key needs its certificate; also set http.tls.certificate"))
        }
        let chain = read("http.tls.certificate", tlsCertificatePath, &faults)
        let key = read("http.tls.key", tlsKeyPath, &faults)
        guard let chain, let key else { return faults }
        do throws(ServerCertificateError) {
            _ = try ServerCertificate(chain: chain, key: key)
        } catch {
            faults.append(explain(error, chain: chain, key: key))
        }
        return faults
    }

    /// Warns of a certificate outside its period of validity, which browsers refuse. The server starts anyway, because the rest of the service works.
    func certificateWarnings(at now: Int64) -> [ConfigurationFault] {
        var faults: [ConfigurationFault] = []
        guard let chain = read("http.tls.certificate", tlsCertificatePath, &faults),
            let key = read("http.tls.key", tlsKeyPath, &faults),
            let certificate = try? ServerCertificate(chain: chain, key: key)
        else { return [] }
        let path = tlsCertificatePath ?? ""
        return switch certificate.validity(at: now) {
        case .valid: []
        case .expired: [fault("http.tls.certificate", "'\(path)' has expired; browsers refuse it until it is renewed")]
        case .notYetValid:
            [fault("http.tls.certificate", "'\(path)' is not valid yet; check the clock of this machine")]
        }
    }

    private func read(_ setting: String, _ path: String?, _ faults: inout [ConfigurationFault]) -> [UInt8]? {
        guard let path else { return nil }
        do throws(FileError) {
            return try FileContents.read(path, atMost: Self.maximumBytes)
        } catch {
            faults.append(fault(setting, "'\(path)' \(error.problem)"))
            return nil
        }
    }

    private func explain(_ error: ServerCertificateError, chain: [UInt8], key: [UInt8]) -> ConfigurationFault {
        let chainFile = "'\(tlsCertificatePath ?? "")'", keyFile = "'\(tlsKeyPath ?? "")'"
        switch error {
        case .noCertificate:
            let advice = Self.advice(
                chain, der: "openssl x509 -inform der -in FILE -out FILE.pem", other: "PRIVATE KEY", "http.tls.key")
            return fault("http.tls.certificate", "\(chainFile) holds no certificate in PEM form\(advice)")
        case .damagedCertificate:
            return fault(
                "http.tls.certificate", "\(chainFile) holds a certificate that cannot be decoded; copy it again")
        case .noKey:
            let advice = Self.advice(
                key, der: "openssl pkey -inform der -in FILE -out FILE.pem", other: "CERTIFICATE",
                "http.tls.certificate")
            return fault("http.tls.key", "\(keyFile) holds no private key in PEM form\(advice)")
        case .damagedKey:
            return fault("http.tls.key", "\(keyFile) holds a private key that cannot be decoded; copy it again")
        case .encryptedKey:
            let command = "openssl pkey -in FILE -out PLAIN"
            return fault(
                "http.tls.key", "\(keyFile) is encrypted with a passphrase; write it without one: '\(command)'")
        case .mismatch:
            return fault(
                "http.tls.key",
                "\(keyFile) is not the key of the certificate \(chainFile), which must come first in its file")
        }
    }

    /// What the file is instead, if its first bytes show it.
    private static func advice(_ bytes: [UInt8], der command: String, other: String, _ setting: String) -> String {
        // Every certificate and key in DER form is a SEQUENCE (X.690 section 8.9).
        if bytes.first == 0x30 { return "; it looks like DER: '\(command)' converts it" }
        let text = String(decoding: bytes, as: UTF8.self)
        return text.contains("\(other)-----") ? "; it looks like the file for \(setting)" : ""
    }
}
