import CSoup
import Dispatch

@testable import HTTPServing

private func acceptAnyCertificate(
    _ message: OpaquePointer?, _ certificate: gpointer?, _ errors: guint, _ context: gpointer?
) -> gboolean { 1 }

/// The bytes of a GBytes, copied.
private func array(of bytes: OpaquePointer?) -> [UInt8] {
    var count: gsize = 0
    guard let bytes, let start = g_bytes_get_data(bytes, &count), count > 0 else { return [] }
    return Array(UnsafeRawBufferPointer(start: start, count: Int(count)))
}

/// HTTPS requests one after the other by libsoup's own client, whatever the certificate; status and body of each.
func getOverTLS(_ url: String, times: Int) async -> [(Int, String)] {
    await withCheckedContinuation { continuation in
        DispatchQueue.global().async {
            let session = soup_session_new()
            defer { g_object_unref(session) }
            continuation.resume(returning: (0..<times).map { _ in get(url, session) })
        }
    }
}

private func get(_ url: String, _ session: UnsafeMutablePointer<SoupSession>?) -> (Int, String) {
    guard let message = soup_message_new("GET", url) else { return (0, "") }
    defer { g_object_unref(UnsafeMutableRawPointer(message)) }
    let accept: @convention(c) (OpaquePointer?, gpointer?, guint, gpointer?) -> gboolean = acceptAnyCertificate
    g_signal_connect_data(
        UnsafeMutableRawPointer(message), "accept-certificate", unsafeBitCast(accept, to: GCallback.self), nil, nil,
        GConnectFlags(rawValue: 0))
    let bytes = soup_session_send_and_read(session, message, nil, nil)
    defer { if let bytes { g_bytes_unref(bytes) } }
    return (Int(soup_message_get_status(message).rawValue), String(decoding: array(of: bytes), as: UTF8.self))
}
