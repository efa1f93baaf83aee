import CLiveKitProtocol
import Recorder

/// The last part of a `filepath` as the template of this server; the server decides about folders and the extension.
enum EgressFileName {
    private static let fields = [
        ("room_name", "room"), ("publisher_identity", "participant"), ("track_id", "track"), ("track_source", "source"),
        ("time", "time"),
    ]

    /// nil where there is none that can be a name.
    static func template(_ path: UnsafeMutablePointer<CChar>?) -> String? {
        guard let path else { return nil }
        return template(String(cString: path))
    }

    /// nil where there is none that can be a name.
    static func template(_ path: String) -> String? {
        guard var name = path.split(separator: "/", omittingEmptySubsequences: false).last.map(String.init) else {
            return nil
        }
        for (field, own) in fields { name.replace("{\(field)}", with: "{\(own)}") }
        if name.hasSuffix(".mp4") { name.removeLast(4) }
        return FileNameTemplate(name).map { _ in name }
    }
}
