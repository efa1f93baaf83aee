import COpenSSL
import Dispatch
import Glibc
import NetworkIO
import Primitives

/// One HTTPS request by OpenSSL's client, whatever the certificate.
struct OpenSSLClient: Sendable {
    /// What came of it.
    struct Outcome: Sendable {
        /// Whether the handshake succeeded.
        var isConnected = false
        /// The protocol that was chosen by ALPN.
        var applicationProtocol: String?
        var reply = ""
        /// Whether the server said that nothing more comes, instead of only ending the connection.
        var isTerminated = false
    }

    let port: UInt16
    /// Offered by ALPN.
    var protocols: [String] = []
    /// Offered for TLS 1.2, which is then the newest version.
    var oldCiphers: String?
    /// Sent in pieces of this many bytes, each a record.
    var pieceBytes = Int.max

    func send(_ request: String) async -> Outcome {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: run(request)) }
        }
    }

    /// Changes keys again and again, which brings the server no bytes, until `isEnough`, and for ten seconds at most; how often.
    func updateKeys(until isEnough: @escaping @Sendable () -> Bool) async -> Int {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                var count = 0
                let start = MonotonicClock.now()
                connect { ssl in
                    while !isEnough(), MonotonicClock.now() - start < .seconds(10) {
                        guard SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1, SSL_do_handshake(ssl) == 1 else {
                            return
                        }
                        count += 1
                    }
                }
                continuation.resume(returning: count)
            }
        }
    }

    /// Runs `body` on a connection whose handshake has succeeded.
    private func connect(_ body: (OpaquePointer) -> Void) {
        guard let context = SSL_CTX_new(TLS_client_method()) else { return }
        defer { SSL_CTX_free(context) }
        if let oldCiphers {
            SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
            SSL_CTX_set_cipher_list(context, oldCiphers)
        }
        let offered = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        if !offered.isEmpty { SSL_CTX_set_alpn_protos(context, offered, UInt32(offered.count)) }
        guard let ssl = SSL_new(context), let socket = TCPClient.connected(port) else { return }
        defer {
            SSL_free(ssl)
            close(socket)
        }
        SSL_set_fd(ssl, socket)
        if SSL_connect(ssl) == 1 { body(ssl) }
    }

    private func run(_ request: String) -> Outcome {
        var outcome = Outcome()
        connect { ssl in
            outcome.isConnected = true
            outcome.applicationProtocol = Self.selected(ssl)
            var rest = Array(request.utf8)[...]
            while !rest.isEmpty {
                let piece = Array(rest.prefix(pieceBytes))
                guard SSL_write(ssl, piece, Int32(piece.count)) > 0 else { return }
                rest = rest.dropFirst(piece.count)
            }
            var bytes: [UInt8] = []
            var chunk = [UInt8](repeating: 0, count: 16_384)
            var count = SSL_read(ssl, &chunk, Int32(chunk.count))
            while count > 0 {
                bytes += chunk.prefix(Int(count))
                count = SSL_read(ssl, &chunk, Int32(chunk.count))
            }
            outcome.isTerminated = SSL_get_error(ssl, count) == SSL_ERROR_ZERO_RETURN
            outcome.reply = String(decoding: bytes, as: UTF8.self)
        }
        return outcome
    }

    private static func selected(_ ssl: OpaquePointer) -> String? {
        var name: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &name, &count)
        guard let name, count > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: name, count: Int(count)), as: UTF8.self)
    }
}
