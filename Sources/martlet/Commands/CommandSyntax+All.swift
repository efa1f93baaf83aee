extension CommandSyntax {
    /// Every command, in the order of the overview.
    static let all = [serve, token, checkConfig, config] + operators + [completion, version, helpOn]

    private static let configFile = Option(
        name: "--config", value: "FILE",
        help: "configuration file (YAML); default: none, only defaults and the environment")

    static let serve = CommandSyntax(
        name: "serve", operands: "[--config FILE] [--dev]", summary: "Runs the server until SIGTERM or SIGINT.",
        options: [
            configFile,
            Option(
                name: "--dev", value: nil,
                help:
                    "for development: this machine only, a built-in key, and tokens for every client that asks; needs no FILE"
            ),
        ],
        details: """
            The server checks all settings before it opens a port, as 'martlet check-config FILE' does. MARTLET_ variables in the
            environment override the file; 'martlet help settings' lists both. The log goes to standard error.

            SIGHUP reloads the file: keys, certificate, ICE servers, limits, the rules of new rooms and log.level change. If the file has
            an error, nothing changes. The log names what needs a restart. With --dev, SIGHUP ends the server.

            SIGTERM and SIGINT shut the server down gracefully: running calls may continue for up to sessions.drain seconds. A second
            signal ends it at once. Exit status: 0 ended by a signal, 1 could not start, 2 wrong command line.

            examples:
              martlet serve --dev
              martlet serve --config /etc/martlet.yaml
              MARTLET_HTTP_PORT=8080 MARTLET_KEYS_APP="$SECRET" martlet serve
            """)

    static let token = CommandSyntax(
        name: "token", operands: "--identity NAME [OPTIONS]",
        summary: "Prints an access token, signed with a key of the configuration.",
        options: [
            configFile,
            Option(name: "--dev", value: nil, help: "sign with the key of 'martlet serve --dev'"),
            Option(name: "--key", value: "NAME", help: "the key to sign with; default: the first by name"),
            Option(
                name: "--identity", value: "NAME",
                help: "identity of the participant; a new session of an identity ends its old one"),
            Option(name: "--room", value: "ROOM", help: "the only room that the token is valid for; default: any room"),
            Option(
                name: "--preset", value: "NAME",
                help: "the preset with the rules of a room that the bearer of this token creates"),
            Option(name: "--name", value: "TEXT", help: "display name"),
            Option(name: "--metadata", value: "TEXT", help: "text for the application, visible to other participants"),
            Option(
                name: "--valid-for", value: "SECONDS",
                help: "how long the token is valid, 1 to 315360000; default: 43200 (12 hours)"),
            Option(name: "--no-publish", value: nil, help: "do not permit publishing"),
            Option(name: "--no-subscribe", value: nil, help: "do not permit receiving"),
            Option(name: "--hidden", value: nil, help: "hide this participant from the others"),
            Option(
                name: "--admin", value: nil,
                help: "permit listing, creating and moderating rooms; --identity is then optional"),
        ],
        details: """
            examples:
              martlet token --dev --identity ada --room studio
              martlet token --config /etc/martlet.yaml --key app --identity camera-1 --room studio --no-subscribe --valid-for 600
            """)

    static let checkConfig = CommandSyntax(
        name: "check-config", operands: "FILE",
        summary: "Checks a configuration file as 'martlet serve' does at start, without serving.",
        maxOperands: 1,
        details: """
            Run it on the machine of the server and as the same user: it reads certificates, looks up network interfaces and addresses,
            and checks that the database and recordings could be written; it creates nothing. MARTLET_ variables in the environment
            apply, as they do for 'serve'. Only 'serve' checks whether a port is in use, so you can check the file of a running server.

            Exit status: 0 valid (warnings go to standard error), 1 errors, each with its file and line, 2 wrong command line.
            """)

    static let config = CommandSyntax(
        name: "config", operands: "show [--config FILE] [--dev]",
        summary: "Prints every setting in force, and where its value comes from.",
        options: [configFile, Option(name: "--dev", value: nil, help: "as 'martlet serve --dev' would have it")],
        maxOperands: 1,
        details: """
            One line for each setting: its path, its value, and after '#' the file with the line, the environment variable, or
            'default'. Secrets are shown as '***'. The environment is that of this command, not that of a running server.

            example:
              martlet config show --config /etc/martlet/martlet.yaml | grep -v '# default$'
            """)

    static let version = CommandSyntax(name: "version", summary: "Prints the version.")

    static let helpOn = CommandSyntax(
        name: "help", operands: "[COMMAND | settings]", summary: "Describes a command, or lists all settings.")
}
