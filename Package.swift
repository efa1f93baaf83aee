// swift-tools-version: 6.2
// The map of the code: one line per module, and what it may import. The build refuses any other import
// (`make build` passes --explicit-target-dependency-import-check error).
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
]

/// Builds a module in one piece in debug builds too.
let whole = ["-whole-module-optimization", "-num-threads", "2", "-disable-batch-mode", "-suppress-remarks"]

/// What simulations spend minutes in is optimised in debug builds too; assertions stay.
let optimised = settings + [.unsafeFlags(["-O", "-assert-config", "Debug"] + whole, .when(configuration: .debug))]

/// `make test` compiles for one run: what neither packets nor descriptions pass through is not optimised there (the module Rooms: 60 s of processor time, 14
/// without; all that `make test` builds with two processors: 725 to 830 s, 545 to 620 without).
let isCompiledForOneRun = Context.environment["MARTLET_ONE_RUN"] == "1"
let offThePath =
    isCompiledForOneRun ? settings + [.unsafeFlags(["-Onone"], .when(configuration: .release))] : settings

/// The macros of Swift Testing are expanded anew for each piece in which a module is compiled (RoomsTests: 44 s of processor time in three, 37 in one).
/// Nothing is gained by optimising a test.
let testing =
    settings + [
        .unsafeFlags(whole, .when(configuration: .debug)),
        .unsafeFlags(["-Onone", "-no-emit-module-separately-wmo"], .when(configuration: .release)),
    ]

func module(_ group: String, _ name: String, _ dependencies: [String], exclude: [String] = [])
    -> [Target]
{
    let isComputing = ["Formats", "Protocols", "Media"].contains(group)
    let isPacketIO = ["NetworkIO", "MediaWorkers"].contains(name)
    return [
        .target(
            name: name,
            dependencies: (name == "Primitives" ? [] : ["Primitives"]) + dependencies.map { .init(stringLiteral: $0) },
            path: group.isEmpty ? "Sources/\(name)" : "Sources/\(group)/\(name)",
            exclude: exclude,
            swiftSettings: isComputing ? optimised : isPacketIO ? settings : offThePath)
    ]
}

func tests(of name: String, also: [String] = []) -> Target {
    .testTarget(
        name: "\(name)Tests",
        dependencies: (name == "Primitives"
            ? ["Primitives", "TestSupport"] : [.init(stringLiteral: name), "Primitives", "TestSupport"])
            + also.map { .init(stringLiteral: $0) },
        path: "Tests/\(name)Tests",
        swiftSettings: testing)
}

func system(_ name: String, pkgConfig: String, apt: String) -> Target {
    .systemLibrary(name: name, path: "Sources/System/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

let systemTargets: [Target] = [
    .target(name: "CLinux", path: "Sources/System/CLinux"),
    .target(name: "CProcessor", path: "Sources/System/CProcessor"),
    system("COpenSSL", pkgConfig: "openssl", apt: "libssl-dev"),
    .target(
        name: "CSRTP", dependencies: ["CSRTPLibrary", "COpenSSL"], path: "Sources/System/CSRTP"),
    system("CSRTPLibrary", pkgConfig: "libsrtp2", apt: "libsrtp2-dev"),
    system("CNice", pkgConfig: "nice", apt: "libnice-dev"),
    system("CSoup", pkgConfig: "libsoup-3.0", apt: "libsoup-3.0-dev"),
    system("CJWT", pkgConfig: "libjwt", apt: "libjwt-dev"),
    system("CJansson", pkgConfig: "jansson", apt: "libjansson-dev"),
    system("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),
    system("CCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
    .target(name: "CHTTPClient", dependencies: ["CCurl"], path: "Sources/System/CHTTPClient"),
    system("CProtobuf", pkgConfig: "libprotobuf-c", apt: "libprotobuf-c-dev"),
    .target(
        name: "CLiveKitProtocol", dependencies: ["CProtobuf"], path: "Sources/System/CLiveKitProtocol",
        exclude: ["livekit.proto"]),
    system("CZlib", pkgConfig: "zlib", apt: "zlib1g-dev"),
    system("CYAML", pkgConfig: "yaml-0.1", apt: "libyaml-dev"),
]

let modules: [Target] = [
    // Formats: bytes and text <-> values, no state over time.
    module("Formats", "Primitives", ["CProcessor"]),
    module("Formats", "RTP", []),
    module("Formats", "PayloadFormats", []),
    module("Formats", "SDP", []),
    module("Formats", "Movies", []),
    module("Formats", "MP4", ["Movies"]),
    module("Formats", "WebM", ["PayloadFormats", "Movies"]),
    module("Formats", "PacketCapture", []),
    // Protocols: one peer's machines, sans-IO.
    module("Protocols", "Cryptography", ["COpenSSL"]),
    module("Protocols", "ICE", ["CNice"]),
    module("Protocols", "DTLS", ["Cryptography", "COpenSSL"]),
    module("Protocols", "SRTP", ["CSRTP"]),
    module("Protocols", "DataChannels", []),
    module("Protocols", "CongestionControl", []),
    // Media: one worker's media plane, sans-IO.
    module("Media", "MediaControl", []),
    module("Media", "PeerTransport", ["RTP", "MediaControl", "Cryptography", "ICE", "DTLS", "SRTP", "DataChannels"]),
    module("Media", "Forwarding", ["RTP", "PayloadFormats", "CongestionControl", "MediaControl"]),
    module("Media", "MediaEngine", ["RTP", "MediaControl", "PeerTransport", "Forwarding", "Cryptography"]),
    module("Media", "Recording", ["RTP", "PayloadFormats", "MediaControl", "Movies", "MP4"]),
    module("Media", "Playback", ["RTP", "PayloadFormats", "MediaControl", "Movies"]),
    // Control: pure decisions.
    module("Control", "AccessTokens", ["CJWT", "CJansson"]),
    module("Control", "Rooms", ["SDP", "AccessTokens", "MediaControl"]),
    // Runtime: threads, sockets, actors.
    module("Runtime", "Logging", []),
    module("Runtime", "NetworkIO", ["CLinux", "Logging"]),
    module(
        "Runtime", "MediaWorkers",
        ["RTP", "NetworkIO", "ICE", "MediaControl", "MediaEngine", "Cryptography", "Logging"]),
    module(
        "Runtime", "RoomService",
        [
            "Rooms", "AccessTokens", "Cryptography", "SDP", "PacketCapture", "MediaControl", "MediaWorkers",
            "NetworkIO", "Logging",
        ]),
    module("Runtime", "Storage", ["CSQLite"]),
    module("Runtime", "HTTPClient", ["CHTTPClient"]),
    module("Runtime", "ObjectStorage", ["HTTPClient", "Cryptography"]),
    module(
        "Runtime", "Webhooks",
        ["RoomService", "Rooms", "Storage", "HTTPClient", "AccessTokens", "Cryptography", "NetworkIO", "Logging"]),
    module(
        "Runtime", "Recorder",
        [
            "RoomService", "Rooms", "MediaControl", "MediaWorkers", "Recording", "Movies", "MP4", "WebM",
            "ObjectStorage", "NetworkIO", "Logging",
        ]),
    module(
        "Runtime", "OfflineJobs", ["Recorder", "RoomService", "Rooms", "NetworkIO", "CLinux", "Logging"]),
    module(
        "Runtime", "Player",
        [
            "RoomService", "Rooms", "MediaControl", "MediaWorkers", "Playback", "Movies", "MP4", "WebM", "NetworkIO",
            "Logging",
        ]),
    module("Runtime", "SessionStore", ["RoomService", "Rooms", "Storage"]),
    module("Runtime", "RuleStore", ["RoomService", "Rooms", "Storage"]),
    module("Runtime", "Tracing", ["RoomService", "Rooms", "HTTPClient", "Logging"]),
    module("Runtime", "HTTPServing", ["NetworkIO", "COpenSSL", "Logging"]),
    // Edges: one module a protocol.
    module(
        "Edges", "EdgeSupport",
        ["HTTPServing", "AccessTokens", "Cryptography", "RoomService", "Rooms", "MediaControl", "Logging"]),
    module(
        "Edges", "Signalling",
        ["EdgeSupport", "RoomService", "Rooms", "AccessTokens", "HTTPServing", "MediaControl", "Logging"],
        exclude: ["Protocol.md"]),
    module(
        "Edges", "WHIP",
        ["EdgeSupport", "RoomService", "Rooms", "AccessTokens", "HTTPServing", "MediaControl", "Logging"]),
    module(
        "Edges", "LiveKit",
        [
            "CLiveKitProtocol", "CZlib", "EdgeSupport", "Recorder", "RoomService", "Rooms", "AccessTokens",
            "HTTPServing", "MediaControl", "Logging",
        ]),
    module(
        "Edges", "ControlAPI",
        [
            "CEmbeddedFiles", "EdgeSupport", "Webhooks", "SessionStore", "Storage", "Recorder", "OfflineJobs", "Player",
            "RoomService",
            "Rooms",
            "AccessTokens", "HTTPServing",
            "MediaControl", "Logging",
        ],
        exclude: ["openapi.json"]),
    module(
        "Edges", "Console", ["CEmbeddedFiles", "HTTPServing", "EdgeSupport", "Cryptography"],
        exclude: ["Page", "Module"]),
    module(
        "Edges", "Telemetry",
        [
            "EdgeSupport", "RoomService", "Rooms", "Webhooks", "Recorder", "OfflineJobs", "Player", "Tracing",
            "HTTPServing",
            "MediaControl",
            "MediaWorkers", "Logging",
        ]),
].flatMap { $0 }

let martlet: [Target] = [
    .target(name: "CEmbeddedFiles", path: "Sources/Edges/CEmbeddedFiles"),
    .target(
        name: "Simulation",
        dependencies: [
            "Primitives", "RTP", "PayloadFormats", "Cryptography", "ICE", "DTLS", "SRTP", "DataChannels",
            "MediaControl",
            "MediaEngine",
        ], path: "Sources/Simulation", swiftSettings: optimised),
    .executableTarget(
        name: "martlet",
        dependencies: [
            "Primitives", "CYAML", "Cryptography", "ICE", "AccessTokens", "MediaControl", "MediaEngine", "MediaWorkers",
            "NetworkIO", "Rooms",
            "RoomService",
            "Storage", "SessionStore", "RuleStore", "Recorder", "OfflineJobs", "Player", "ObjectStorage", "HTTPClient",
            "Webhooks",
            "Tracing",
            "HTTPServing",
            "EdgeSupport",
            "Signalling",
            "WHIP",
            "LiveKit",
            "ControlAPI",
            "Telemetry",
            "Console", "Logging",
            "CLinux",
        ], path: "Sources/martlet", swiftSettings: offThePath),
]

// LoadTests: synthetic publishers and subscribers, benchmarks. Nothing of it is part of the server.
let loadTests: [Target] = [
    .systemLibrary(name: "CVPX", path: "LoadTests/System/CVPX", pkgConfig: "vpx", providers: [.apt(["libvpx-dev"])]),
    .systemLibrary(
        name: "COpus", path: "LoadTests/System/COpus", pkgConfig: "opus", providers: [.apt(["libopus-dev"])]),
    .systemLibrary(
        name: "COpenH264", path: "LoadTests/System/COpenH264", pkgConfig: "openh264",
        providers: [.apt(["libopenh264-dev"])]),
    .target(
        name: "CSyntheticMedia", dependencies: ["CVPX", "COpus", "COpenH264"], path: "LoadTests/System/CSyntheticMedia"),
    .target(name: "CLoadIO", path: "LoadTests/System/CLoadIO"),
    .target(
        name: "LoadGenerator",
        dependencies: [
            "Primitives", "RTP", "SDP", "Cryptography", "SRTP", "MediaControl", "Simulation", "AccessTokens",
            "NetworkIO", "PeerTransport", "Measuring",
            "CSoup", "CSyntheticMedia", "CLoadIO", "CLiveKitProtocol",
        ], path: "LoadTests/Generator", swiftSettings: offThePath),
    .executableTarget(
        name: "loadtest", dependencies: ["LoadGenerator"], path: "LoadTests/loadtest", swiftSettings: offThePath),
    .target(name: "CInstruments", path: "LoadTests/CInstruments"),
    .target(name: "Measuring", dependencies: ["COpenSSL"], path: "LoadTests/Measuring", swiftSettings: settings),
    .executableTarget(
        name: "bench",
        dependencies: [
            "CInstruments", "Measuring", "Primitives", "RTP", "PayloadFormats", "Cryptography", "SRTP", "MediaControl",
            "DataChannels", "MediaEngine", "MediaWorkers", "NetworkIO", "Logging", "Simulation", "MP4", "Recording",
            "Recorder", "RoomService", "Rooms",
        ], path: "LoadTests/Benchmarks", exclude: ["thresholds.json"], swiftSettings: settings),
]

let testTargets: [Target] = [
    .target(name: "TestSupport", dependencies: ["Primitives"], path: "Tests/TestSupport", swiftSettings: offThePath),
    tests(of: "Primitives"),
    tests(of: "RTP"),
    tests(of: "PayloadFormats", also: ["RTP"]),
    tests(of: "SDP"),
    tests(of: "MP4", also: ["Movies"]),
    tests(of: "WebM", also: ["Movies"]),
    tests(of: "PacketCapture"),
    tests(of: "Cryptography"),
    tests(of: "ICE", also: ["CNice", "Cryptography"]),
    tests(of: "DTLS", also: ["Cryptography"]),
    tests(of: "SRTP", also: ["CSRTP", "CSRTPLibrary"]),
    tests(of: "DataChannels"),
    tests(of: "CongestionControl", also: ["Simulation"]),
    tests(
        of: "PeerTransport",
        also: ["MediaControl", "Cryptography", "ICE", "DTLS", "SRTP", "DataChannels", "Simulation"]),
    tests(of: "Forwarding", also: ["RTP", "PayloadFormats", "MediaControl"]),
    tests(
        of: "MediaEngine",
        also: [
            "RTP", "MediaControl", "PeerTransport", "Forwarding", "Cryptography", "ICE", "DTLS", "SRTP", "DataChannels",
            "Simulation", "CInstruments",
        ]),
    tests(of: "Recording", also: ["RTP", "PayloadFormats", "MediaControl", "Movies", "MP4"]),
    tests(of: "Playback", also: ["RTP", "PayloadFormats", "MediaControl", "Movies", "MP4", "Recording"]),
    tests(of: "AccessTokens"),
    tests(of: "Rooms", also: ["SDP", "AccessTokens", "MediaControl"]),
    tests(of: "Logging"),
    tests(of: "NetworkIO", also: ["CLinux"]),
    tests(
        of: "MediaWorkers",
        also: ["MediaControl", "MediaEngine", "Cryptography", "NetworkIO", "Logging", "RTP", "Simulation"]),
    tests(
        of: "RoomService",
        also: [
            "Rooms", "SDP", "AccessTokens", "MediaControl", "MediaEngine", "MediaWorkers", "Cryptography", "Logging",
        ]),
    tests(of: "Storage"),
    tests(of: "ObjectStorage"),
    tests(of: "HTTPClient", also: ["HTTPServing", "NetworkIO", "Logging"]),
    tests(
        of: "Recorder",
        also: [
            "RoomService", "Rooms", "MediaControl", "MediaWorkers", "Recording", "Movies", "MP4", "ObjectStorage",
            "NetworkIO", "Logging",
        ]),
    tests(
        of: "OfflineJobs",
        also: ["Recorder", "RoomService", "Rooms", "NetworkIO", "Logging"]),
    tests(
        of: "Player",
        also: [
            "RoomService", "Rooms", "MediaControl", "MediaWorkers", "Playback", "Movies", "MP4", "NetworkIO", "Logging",
        ]),
    tests(of: "SessionStore", also: ["RoomService", "Rooms", "AccessTokens", "MediaControl", "Storage"]),
    tests(
        of: "RuleStore",
        also: [
            "EdgeTestSupport", "ControlAPI", "RoomService", "Rooms", "SDP", "MediaControl", "AccessTokens", "Storage",
        ]),
    tests(
        of: "Webhooks",
        also: [
            "EdgeTestSupport", "RoomService", "Rooms", "AccessTokens", "Storage", "NetworkIO", "Cryptography",
            "Logging",
        ]),
    tests(of: "Tracing", also: ["RoomService", "Rooms", "HTTPClient", "Logging"]),
    tests(of: "HTTPServing", also: ["CSoup", "COpenSSL", "Cryptography", "Logging", "NetworkIO"]),
    .target(
        name: "EdgeTestSupport",
        dependencies: [
            "Primitives", "MediaControl", "SDP", "AccessTokens", "Rooms", "RoomService", "HTTPServing", "EdgeSupport",
            "Logging",
        ], path: "Tests/EdgeTestSupport", swiftSettings: offThePath),
    tests(
        of: "EdgeSupport",
        also: ["EdgeTestSupport", "AccessTokens", "HTTPServing", "RoomService", "Rooms", "MediaControl"]),
    tests(
        of: "Signalling",
        also: [
            "EdgeTestSupport", "EdgeSupport", "HTTPServing", "AccessTokens", "RoomService", "Rooms", "MediaControl",
            "SDP",
        ]),
    tests(of: "WHIP", also: ["EdgeTestSupport", "EdgeSupport", "HTTPServing", "AccessTokens", "RoomService", "Rooms"]),
    tests(
        of: "LiveKit",
        also: [
            "EdgeTestSupport", "EdgeSupport", "HTTPServing", "AccessTokens", "RoomService", "Rooms", "MediaControl",
            "CLiveKitProtocol", "Recorder",
        ]),
    tests(
        of: "ControlAPI",
        also: [
            "EdgeTestSupport", "EdgeSupport", "HTTPServing", "AccessTokens", "RoomService", "Rooms", "SDP",
            "MediaControl", "Storage", "SessionStore", "Webhooks", "Recorder", "OfflineJobs", "Logging",
        ]),
    tests(of: "Console", also: ["EdgeTestSupport", "HTTPServing"]),
    tests(
        of: "Telemetry",
        also: ["EdgeTestSupport", "EdgeSupport", "HTTPServing", "RoomService", "Rooms", "MediaControl", "MediaWorkers"]
    ),
    tests(of: "Simulation", also: ["MediaControl", "MediaEngine", "RTP", "DataChannels"]),
    .testTarget(
        name: "ScenarioTests", dependencies: ["Primitives", "MediaControl", "MediaEngine", "Simulation"],
        path: "Tests/ScenarioTests", swiftSettings: testing),
    tests(
        of: "martlet",
        also: [
            "AccessTokens", "Cryptography", "EdgeSupport", "EdgeTestSupport", "HTTPServing", "Logging", "MediaEngine",
            "MediaWorkers", "NetworkIO", "ObjectStorage", "RoomService", "Rooms", "SDP",
        ]),
    tests(of: "LoadGenerator"),
    .testTarget(
        name: "ArchitectureTests", dependencies: ["TestSupport"], path: "Tests/ArchitectureTests",
        swiftSettings: testing),
]

// The fuzz targets' code (Tests/Fuzz/Targets) is built twice: into a test that replays seeds and findings, and, where
// MARTLET_FUZZ=1 (Tests/Fuzz/run.sh sets it), into a program around libFuzzer's own main instead.
let isFuzzing = Context.environment["MARTLET_FUZZ"] == "1"
let fuzzDependencies: [Target.Dependency] = [
    "Primitives", "RTP", "PayloadFormats", "SDP", "Cryptography", "ICE", "DTLS", "SRTP", "DataChannels",
    "CongestionControl", "MediaControl", "PeerTransport", "Forwarding", "MediaEngine", "Movies", "MP4", "WebM",
    "Recording", "Playback", "AccessTokens", "HTTPServing", "EdgeSupport", "Signalling", "WHIP", "LiveKit",
    "CLiveKitProtocol", "ControlAPI", "RoomService", "Simulation", "TestSupport",
]
let fuzzTargets: [Target] = [
    isFuzzing
        ? .executableTarget(
            name: "fuzz", dependencies: fuzzDependencies, path: "Tests/Fuzz", exclude: ["Replay", "Corpus", "run.sh"],
            sources: ["Targets", "Main"], swiftSettings: settings + [.unsafeFlags(["-parse-as-library"])])
        : .testTarget(
            name: "FuzzTests", dependencies: fuzzDependencies + ["martlet"], path: "Tests/Fuzz",
            exclude: ["Main", "Corpus", "run.sh"],
            sources: ["Targets", "Replay"], swiftSettings: testing)
]

let package = Package(
    name: "martlet",
    products: [
        .executable(name: "martlet", targets: ["martlet"]), .executable(name: "loadtest", targets: ["loadtest"]),
    ],
    targets: systemTargets + modules + martlet + loadTests + testTargets + fuzzTargets
)
