import CSoup

// libsoup calls these on the loop's thread; each enters the listener without waiting. They are named functions, because a closure
// literal handed to C may be taken for main-actor code.

/// Connects `function` to a signal of `object`, with `listener` as its context.
func connect<Function>(
    _ object: OpaquePointer?, _ signal: String, _ function: Function, _ listener: HTTPListener
) {
    g_signal_connect_data(
        UnsafeMutableRawPointer(object), signal, unsafeBitCast(function, to: GCallback.self),
        Unmanaged.passUnretained(listener).toOpaque(), nil, GConnectFlags(rawValue: 0))
}

typealias MessageSignal = @convention(c) (OpaquePointer?, gpointer?) -> Void
typealias ChunkSignal = @convention(c) (OpaquePointer?, OpaquePointer?, gpointer?) -> Void
typealias RequestSignal = @convention(c) (gpointer?, OpaquePointer?, gpointer?) -> Void

private func listener(_ context: gpointer?) -> HTTPListener? {
    context.map { Unmanaged<HTTPListener>.fromOpaque($0).takeUnretainedValue() }
}

/// The bytes of a GBytes, copied.
func array(of bytes: OpaquePointer?) -> [UInt8] {
    var count: gsize = 0
    guard let bytes, let start = g_bytes_get_data(bytes, &count), count > 0 else { return [] }
    return Array(UnsafeRawBufferPointer(start: start, count: Int(count)))
}

func soupRequestStarted(_ server: gpointer?, _ message: OpaquePointer?, _ context: gpointer?) {
    let message = SoupMessage(message)
    listener(context)?.assumeIsolated { $0.connectionIsActive(message) }
}

func soupGotHeaders(_ message: OpaquePointer?, _ context: gpointer?) {
    let message = SoupMessage(message)
    listener(context)?.assumeIsolated { $0.headArrived(message) }
}

func soupGotChunk(_ message: OpaquePointer?, _ chunk: OpaquePointer?, _ context: gpointer?) {
    let key = SoupMessage(message).key
    let bytes = array(of: chunk)
    listener(context)?.assumeIsolated { $0.bodyArrived(key, bytes) }
}

func soupHandle(
    _ server: UnsafeMutablePointer<SoupServer>?, _ message: OpaquePointer?, _ path: UnsafePointer<CChar>?,
    _ query: OpaquePointer?, _ context: gpointer?
) {
    let message = SoupMessage(message)
    listener(context)?.assumeIsolated { $0.requestIsComplete(message) }
}

func soupFinished(_ message: OpaquePointer?, _ context: gpointer?) {
    let key = SoupMessage(message).key
    listener(context)?.assumeIsolated { $0.messageFinished(key) }
}

func soupWroteInformational(_ message: OpaquePointer?, _ context: gpointer?) {
    let message = SoupMessage(message)
    listener(context)?.assumeIsolated { $0.handshakeIsWritten(message) }
}
