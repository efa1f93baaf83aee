extension CommandSyntax {
    /// Every command, in the order of the overview.
    static let all = [serve, token, checkConfig, version, helpOn]

    private static let config = Option(
        name: "--config", value: "FILE", help: "settings, as YAML; without it, defaults and the environment")

    static let serve = CommandSyntax(
        name: "serve", operands: "[--config FILE] [--dev]", summary: "Runs the server until SIGTERM or SIGINT.",
        options: [
            config,
            Option(
                name: "--dev", value: nil,
                help: "this machine only, with a built-in key and tokens for whoever asks; needs no FILE"),
        ],
        details: """
            All settings are checked before anything is opened, as 'martlet check-config FILE' checks them. MARTLET_ variables in the
            environment override the file; 'martlet help settings' lists both. The log goes to standard error.

            SIGTERM and SIGINT end the server in order, after at most sessions.drain seconds in which running calls may go on; a second
            one ends it at once. Exit status: 0 ended by a signal, 1 could not start, 2 wrong command line.

            examples:
              martlet serve --dev
              martlet serve --config /etc/martlet.yaml
              MARTLET_HTTP_PORT=8080 MARTLET_KEYS_APP="$SECRET" martlet serve
            """)

    static let token = CommandSyntax(
        name: "token", operands: "--identity NAME [OPTIONS]",
        summary: "Prints an access token, signed with a key of the configuration.",
        options: [
            config,
            Option(name: "--dev", value: nil, help: "sign with the key of 'martlet serve --dev'"),
            Option(name: "--key", value: "NAME", help: "the key that signs; without it, the first by name"),
            Option(
                name: "--identity", value: "NAME",
                help: "who joins; a newer session of the same identity ends the older one"),
            Option(name: "--room", value: "ROOM", help: "the only room that the token opens; without it, any room"),
            Option(name: "--name", value: "TEXT", help: "the name that others see"),
            Option(name: "--metadata", value: "TEXT", help: "text for the application, visible to others"),
            Option(
                name: "--valid-for", value: "SECONDS",
                help: "how long the token can be used; without it, 43200 (12 hours)"),
            Option(name: "--no-publish", value: nil, help: "may not publish"),
            Option(name: "--no-subscribe", value: nil, help: "may not receive others"),
            Option(name: "--hidden", value: nil, help: "others do not see this participant"),
            Option(
                name: "--admin", value: nil, help: "may list, create and moderate rooms; then --identity is optional"),
        ],
        details: """
            examples:
              martlet token --dev --identity ada --room studio
              martlet token --config /etc/martlet.yaml --key app --identity camera-1 --room studio --no-subscribe --valid-for 600
            """)

    static let checkConfig = CommandSyntax(
        name: "check-config", operands: "FILE",
        summary: "Checks settings without serving, as 'martlet serve' does at its start.",
        takesOperand: true,
        details: """
            Run it on the machine that will serve and as the same user: it reads certificates and looks for network interfaces and
            addresses. MARTLET_ variables in the environment count, as they do for 'serve'. Ports that another process uses are
            found at the start only, so a running server's file can be checked.

            Exit status: 0 good (warnings go to standard error), 1 faults, each with its file and line, 2 wrong command line.
            """)

    static let version = CommandSyntax(name: "version", summary: "Prints the version.")

    static let helpOn = CommandSyntax(
        name: "help", operands: "[COMMAND | settings]", summary: "Describes a command, or lists all settings.")
}
