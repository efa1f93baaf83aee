public import HTTPServing

/// The console's pages and the JavaScript module that they use: static files that are part of the program, so that they work offline and from any folder.
public enum ConsolePage {
    /// Adds the pages, their files below "/console/", and the module: "/martlet.js" with its parts below "/martlet/".
    public static func register(on router: inout Router) {
        for (path, content) in pages {
            router.on(.get, path) { _ in response(for: content, type: "text/html; charset=utf-8") }
        }
        for (name, content) in files {
            router.on(.get, "/console/\(name)") { _ in response(for: content, type: type(of: name)) }
        }
        for (path, content) in module {
            router.on(.get, path) { _ in response(for: content, type: type(of: path)) }
        }
    }

    /// Where a person begins: rooms and operators; the check before a call; the reference of the control API; examples of the module.
    private static let pages: [(path: String, content: [UInt8])] = [
        ("/", PackageResources.index_html),
        ("/check", PackageResources.check_html),
        ("/reference", PackageResources.reference_html),
        ("/examples", PackageResources.examples_html),
    ]

    /// Martlet for web apps. Pages of the origins that `http.allowed_origins` names import it from here; the router adds what they need.
    private static let module: [(path: String, content: [UInt8])] = [
        ("/martlet.js", PackageResources.martlet_js),
        ("/martlet/capture.js", PackageResources.capture_js),
        ("/martlet/channels.js", PackageResources.channels_js),
        ("/martlet/errors.js", PackageResources.errors_js),
        ("/martlet/files.js", PackageResources.files_js),
        ("/martlet/participants.js", PackageResources.participants_js),
        ("/martlet/people.js", PackageResources.people_js),
        ("/martlet/publishing.js", PackageResources.publishing_js),
        ("/martlet/receiving.js", PackageResources.receiving_js),
        ("/martlet/room.js", PackageResources.room_js),
        ("/martlet/signal.js", PackageResources.signal_js),
    ]

    private static let files: [(name: String, content: [UInt8])] = [
        ("style.css", PackageResources.style_css),
        ("room.css", PackageResources.room_css),
        ("chat.css", PackageResources.chat_css),
        ("operators.css", PackageResources.operators_css),
        ("screens.css", PackageResources.screens_css),
        ("check.css", PackageResources.check_css),
        ("examples.css", PackageResources.examples_css),
        ("reference.css", PackageResources.reference_css),
        ("martlet.svg", PackageResources.martlet_svg),
        ("app.js", PackageResources.app_js),
        ("media.js", PackageResources.media_js),
        ("generated.js", PackageResources.generated_js),
        ("call.js", PackageResources.call_js),
        ("chat.js", PackageResources.chat_js),
        ("roster.js", PackageResources.roster_js),
        ("grid.js", PackageResources.grid_js),
        ("statistics.js", PackageResources.statistics_js),
        ("limits.js", PackageResources.limits_js),
        ("outage.js", PackageResources.outage_js),
        ("operators.js", PackageResources.operators_js),
        ("places.js", PackageResources.places_js),
        ("api.js", PackageResources.api_js),
        ("elements.js", PackageResources.elements_js),
        ("members.js", PackageResources.members_js),
        ("member.js", PackageResources.member_js),
        ("moment.js", PackageResources.moment_js),
        ("chart.js", PackageResources.chart_js),
        ("policy.js", PackageResources.policy_js),
        ("rules.js", PackageResources.rules_js),
        ("impact.js", PackageResources.impact_js),
        ("sessions.js", PackageResources.sessions_js),
        ("events.js", PackageResources.events_js),
        ("dialog.js", PackageResources.dialog_js),
        ("guests.js", PackageResources.guests_js),
        ("names.js", PackageResources.names_js),
        ("tokens.js", PackageResources.tokens_js),
        ("hue.js", PackageResources.hue_js),
        ("roomcharts.js", PackageResources.roomcharts_js),
        ("devices.js", PackageResources.devices_js),
        ("hands.js", PackageResources.hands_js),
        ("check.js", PackageResources.check_js),
        ("loopback.js", PackageResources.loopback_js),
        ("reference.js", PackageResources.reference_js),
        ("schema.js", PackageResources.schema_js),
        ("example.js", PackageResources.example_js),
        ("examples.js", PackageResources.examples_js),
    ]

    private static func type(of name: String) -> String {
        if name.hasSuffix(".css") { return "text/css; charset=utf-8" }
        return name.hasSuffix(".svg") ? "image/svg+xml" : "text/javascript; charset=utf-8"
    }

    /// The page runs only its own scripts and is shown in nobody's frame.
    private static let policy =
        "default-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob: mediastream:; "
        + "connect-src 'self' ws: wss:; frame-ancestors 'none'; base-uri 'none'"

    private static func response(for content: [UInt8], type: String) -> HTTPResponse {
        HTTPResponse(
            status: 200,
            headers: [
                "Content-Type": type, "Cache-Control": "no-cache", "Content-Security-Policy": policy,
                "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
            ], body: content)
    }
}
