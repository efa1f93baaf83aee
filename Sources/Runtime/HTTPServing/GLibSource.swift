import CSoup
import Primitives

/// A timer or a readiness watch on a `GLibLoop`. Ends with `cancel()` or when its call says so.
///
/// Not Sendable: belongs to the loop's thread.
final class GLibSource {
    /// What a source calls on the loop's thread; false ends it.
    typealias Call = @Sendable () -> Bool

    private let source: UnsafeMutablePointer<GSource>

    /// Calls after `interval`, and again after each `interval` while the call says true.
    init(every interval: TimeInterval, on loop: GLibLoop, _ call: @escaping Call) {
        source = g_timeout_source_new(guint(clamping: max(1, interval.milliseconds)))
        start(on: loop, runSource, call)
    }

    /// Calls whenever `stream` can take bytes.
    init(writable stream: OpaquePointer, on loop: GLibLoop, _ call: @escaping Call) {
        source = g_pollable_output_stream_create_source(stream, nil)
        startStream(on: loop, call)
    }

    /// Calls whenever `stream` has bytes or has ended.
    init(readable stream: OpaquePointer, on loop: GLibLoop, _ call: @escaping Call) {
        source = g_pollable_input_stream_create_source(stream, nil)
        startStream(on: loop, call)
    }

    /// Calls whenever a descriptor has bytes or has ended.
    init(readable descriptor: Int32, on loop: GLibLoop, _ call: @escaping Call) {
        source = g_unix_fd_source_new(descriptor, G_IO_IN)
        let run: @convention(c) (gint, GIOCondition, gpointer?) -> gboolean = runDescriptorSource
        start(on: loop, unsafeBitCast(run, to: GSourceFunc.self), call)
    }

    private func startStream(on loop: GLibLoop, _ call: @escaping Call) {
        let run: @convention(c) (gpointer?, gpointer?) -> gboolean = runStreamSource
        start(on: loop, unsafeBitCast(run, to: GSourceFunc.self), call)
    }

    deinit {
        g_source_destroy(source)
        g_source_unref(source)
    }

    /// Calls no more.
    func cancel() { g_source_destroy(source) }

    private func start(on loop: GLibLoop, _ run: GSourceFunc, _ call: @escaping Call) {
        let box = Unmanaged.passRetained(SourceCall(call))
        g_source_set_callback(source, run, box.toOpaque(), releaseSourceCall)
        loop.attach(source)
    }
}

/// Carries a closure across GLib's C interface.
private final class SourceCall: Sendable {
    let call: GLibSource.Call
    init(_ call: @escaping GLibSource.Call) { self.call = call }
}

private func runSource(_ context: gpointer?) -> gboolean {
    guard let context else { return 0 }
    return Unmanaged<SourceCall>.fromOpaque(context).takeUnretainedValue().call() ? 1 : 0
}

private func runStreamSource(_ stream: gpointer?, _ context: gpointer?) -> gboolean { runSource(context) }

private func runDescriptorSource(_ descriptor: gint, _ condition: GIOCondition, _ context: gpointer?) -> gboolean {
    runSource(context)
}

private func releaseSourceCall(_ context: gpointer?) {
    if let context { Unmanaged<SourceCall>.fromOpaque(context).release() }
}
