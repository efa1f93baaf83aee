import CSoup

/// Opens the socket that libsoup listens on: with a longer queue than GLib's ten, and for both families where asked.
enum ListeningSocket {
    /// Connections that the kernel completes while the loop is busy: a class joining in one second.
    private static let backlog: gint = 1_024

    /// A listening socket, which the caller owns, and its port.
    static func open(
        host: String, port: UInt16
    ) throws(HTTPServerError) -> (socket: UnsafeMutablePointer<GSocket>, port: UInt16) {
        guard let address = g_inet_address_new_from_string(host) else { throw .invalidAddress(host) }
        defer { g_object_unref(address) }
        let family = g_inet_address_get_family(address)
        do {
            return try open(address, family, port)
        } catch {
            // "::" on a machine without IPv6 means any IPv4 address.
            guard host == "::", let any = g_inet_address_new_any(G_SOCKET_FAMILY_IPV4) else { throw error }
            defer { g_object_unref(any) }
            return try open(any, G_SOCKET_FAMILY_IPV4, port)
        }
    }

    private static func open(
        _ address: UnsafeMutablePointer<GInetAddress>, _ family: GSocketFamily, _ port: UInt16
    ) throws(HTTPServerError) -> (socket: UnsafeMutablePointer<GSocket>, port: UInt16) {
        var error: UnsafeMutablePointer<GError>?
        guard let socket = g_socket_new(family, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, &error) else {
            throw .cannotListen(takeMessage(error))
        }
        if family == G_SOCKET_FAMILY_IPV6 {
            g_socket_set_option(socket, gint(IPPROTO_IPV6), IPV6_V6ONLY, 0, nil)
        }
        g_socket_set_listen_backlog(socket, backlog)
        let local = g_inet_socket_address_new(address, port)
        defer { g_object_unref(local) }
        guard g_socket_bind(socket, local, 1, &error) != 0, g_socket_listen(socket, &error) != 0,
            let bound = g_socket_get_local_address(socket, &error)
        else {
            g_object_unref(socket)
            throw .cannotListen(takeMessage(error))
        }
        defer { g_object_unref(bound) }
        return (socket, csoup_inet_port(bound))
    }
}
