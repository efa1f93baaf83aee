internal import CEmbeddedFiles
import Cryptography
import EdgeSupport
public import HTTPServing
import Primitives

/// The console's pages and the JavaScript module that they use: static files that are part of the program, so that they work offline and from any folder.
public enum ConsolePage {
    /// Adds the pages, their files below "/console/", and the module: "/martlet.js" with its parts below "/martlet/". Pages of the origins that
    /// `http.allowed_origins` names import the module from here; the router adds what they need.
    public static func register(on router: inout Router) {
        let files = embedded_console_files()
        for file in UnsafeBufferPointer(start: files.first, count: Int(files.count)) {
            let path = String(cString: file.path)
            let content = Array(UnsafeBufferPointer(start: file.bytes, count: Int(file.byte_count)))
            let tag = Digest.sha256(content).prefix(16).hexadecimal
            router.on(.get, path) { request in response(for: content, at: path, tag: tag, to: request) }
        }
    }

    /// A path without an extension is a page.
    private static func type(of path: String) -> String {
        switch path.split(separator: ".").last {
        case "css": "text/css; charset=utf-8"
        case "svg": "image/svg+xml"
        case "js": "text/javascript; charset=utf-8"
        default: "text/html; charset=utf-8"
        }
    }

    /// The page runs only its own scripts and is never shown in a frame of another one.
    private static let policy =
        "default-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob: mediastream:; "
        + "connect-src 'self' ws: wss:; frame-ancestors 'none'; base-uri 'none'"

    /// Browsers revalidate each time, so that they have the server's version, and are sent a file only if theirs differs.
    private static func response(
        for content: [UInt8], at path: String, tag: String, to request: HTTPRequest
    ) -> HTTPResponse {
        var response = HTTPResponse(
            status: 200,
            headers: [
                "ETag": EntityTag.field(tag), "Cache-Control": "no-cache", "Content-Security-Policy": policy,
                "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
            ])
        if EntityTag.isNamed(tag, by: request.headers.values("If-None-Match")) {
            response.status = 304
        } else {
            response.headers["Content-Type"] = type(of: path)
            response.body = content
        }
        return response
    }
}
