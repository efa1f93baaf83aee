import CSoup
import Dispatch

@testable import HTTPServing

private func acceptAnyCertificate(
    _ message: OpaquePointer?, _ certificate: gpointer?, _ errors: guint, _ context: gpointer?
) -> gboolean { 1 }

/// One HTTPS request by libsoup's own client, whatever the certificate; status and body.
func getOverTLS(_ url: String) async -> (Int, String) {
    await withCheckedContinuation { continuation in
        DispatchQueue.global().async {
            let session = soup_session_new()
            defer { g_object_unref(session) }
            guard let message = soup_message_new("GET", url) else { return continuation.resume(returning: (0, "")) }
            defer { g_object_unref(UnsafeMutableRawPointer(message)) }
            let accept: @convention(c) (OpaquePointer?, gpointer?, guint, gpointer?) -> gboolean = acceptAnyCertificate
            g_signal_connect_data(
                UnsafeMutableRawPointer(message), "accept-certificate", unsafeBitCast(accept, to: GCallback.self), nil,
                nil, GConnectFlags(rawValue: 0))
            let bytes = soup_session_send_and_read(session, message, nil, nil)
            defer { if let bytes { g_bytes_unref(bytes) } }
            let status = Int(soup_message_get_status(message).rawValue)
            continuation.resume(returning: (status, String(decoding: array(of: bytes), as: UTF8.self)))
        }
    }
}
