internal import CEmbeddedFiles
public import HTTPServing

/// The console's pages and the JavaScript module that they use: static files that are part of the program, so that they work offline and from any folder.
public enum ConsolePage {
    /// Adds the pages, their files below "/console/", and the module: "/martlet.js" with its parts below "/martlet/". Pages of the origins that
    /// `http.allowed_origins` names import the module from here; the router adds what they need.
    public static func register(on router: inout Router) {
        let files = embedded_console_files()
        for file in UnsafeBufferPointer(start: files.first, count: Int(files.count)) {
            let path = String(cString: file.path)
            let content = Array(UnsafeBufferPointer(start: file.bytes, count: Int(file.byte_count)))
            router.on(.get, path) { _ in response(for: content, at: path) }
        }
    }

    /// A path without an ending is a page, where a person begins.
    private static func type(of path: String) -> String {
        switch path.split(separator: ".").last {
        case "css": "text/css; charset=utf-8"
        case "svg": "image/svg+xml"
        case "js": "text/javascript; charset=utf-8"
        default: "text/html; charset=utf-8"
        }
    }

    /// The page runs only its own scripts and is shown in nobody's frame.
    private static let policy =
        "default-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob: mediastream:; "
        + "connect-src 'self' ws: wss:; frame-ancestors 'none'; base-uri 'none'"

    private static func response(for content: [UInt8], at path: String) -> HTTPResponse {
        HTTPResponse(
            status: 200,
            headers: [
                "Content-Type": type(of: path), "Cache-Control": "no-cache", "Content-Security-Policy": policy,
                "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
            ], body: content)
    }
}
