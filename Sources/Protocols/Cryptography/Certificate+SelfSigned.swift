internal import COpenSSL

extension Certificate {
    /// A fresh self-signed certificate, valid from a day ago (clocks of phones are wrong) for 30 days.
    public static func selfSigned(_ kind: KeyKind = .p256) throws(CryptographyError) -> Certificate {
        guard let key = makeKey(kind) else { throw .failed(call: "EVP_PKEY_keygen") }
        defer { EVP_PKEY_free(key) }
        guard let certificate = X509_new() else { throw .failed(call: "X509_new") }
        defer { X509_free(certificate) }
        guard fill(certificate, key: key) else { throw .failed(call: "X509_sign") }
        guard let der = encode({ i2d_X509(certificate, $0) }), let keyDER = encode({ i2d_PrivateKey(key, $0) }) else {
            throw .failed(call: "i2d")
        }
        return Certificate(der: der, privateKeyDER: keyDER, keyKind: kind)
    }

    private static func makeKey(_ kind: KeyKind) -> OpaquePointer? {
        guard let context = EVP_PKEY_CTX_new_id(kind == .p256 ? EVP_PKEY_EC : EVP_PKEY_RSA, nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        guard EVP_PKEY_keygen_init(context) == 1 else { return nil }
        let parameters =
            switch kind {
            case .p256: EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1)
            case .rsa2048: EVP_PKEY_CTX_set_rsa_keygen_bits(context, 2_048)
            }
        var key: OpaquePointer?
        guard parameters == 1, EVP_PKEY_keygen(context, &key) == 1 else { return nil }
        return key
    }

    private static func fill(_ certificate: OpaquePointer, key: OpaquePointer) -> Bool {
        // RFC 5280 section 4.1.2.2: positive, at most 20 bytes. 63 random bits are unique enough for a certificate
        // that lives days.
        var generator = SystemRandomNumberGenerator()
        let serial = generator.next() >> 1 | 1
        guard X509_set_version(certificate, 2) == 1,
            ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial) == 1,
            X509_gmtime_adj(X509_getm_notBefore(certificate), -86_400) != nil,
            X509_gmtime_adj(X509_getm_notAfter(certificate), 30 * 86_400) != nil,
            X509_set_pubkey(certificate, key) == 1,
            let name = X509_get_subject_name(certificate)
        else { return false }
        // No host name and no product version: a certificate must not identify the server to unknown clients.
        let text = Array("WebRTC".utf8)
        return X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_ASC, text, Int32(text.count), -1, 0) == 1
            && X509_set_issuer_name(certificate, name) == 1
            && X509_sign(certificate, key, EVP_sha256()) > 0
    }

    /// OpenSSL's two-step encoding: ask for the length, then write.
    private static func encode(_ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32) -> [UInt8]? {
        let length = Int(write(nil))
        guard length > 0 else { return nil }
        return [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            var cursor = buffer.baseAddress
            count = max(0, Int(write(&cursor)))
        }
    }
}
