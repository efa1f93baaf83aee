/// The driver of that name; add a line here for a new one.
func makeDriver(_ options: RunOptions) throws(LoadError) -> any SignallingDriver {
    let http = SoupClient()
    let tokens = TokenSource(fixed: options.token, key: options.key)
    switch options.driver {
    case "martlet": return MartletDriver(base: options.url, http: http, tokens: tokens)
    case "livekit": return LiveKitDriver(base: options.url, http: http, tokens: tokens)
    case "whip": return WHIPDriver(base: options.url, http: http, tokens: tokens)
    case "janus": return JanusDriver(base: options.url, http: http)
    default: throw .usage("unknown driver '\(options.driver)'; expected martlet, livekit, whip or janus")
    }
}
