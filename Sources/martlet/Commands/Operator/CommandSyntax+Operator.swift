extension CommandSyntax {
    /// Commands that call a running server.
    static let operators = [rooms, participants, kick, move, policy, events, sessions, jobs, reach]

    private static let exitStatus = """
        Exit status: 0 done, 1 refused by the server, 2 wrong command line, 3 the server cannot be reached.
        """

    private static let room = Option(name: "--room", value: "ROOM", help: "of this room only; default: all rooms")

    private static let rooms = CommandSyntax(
        name: "rooms", operands: "[list | show | create | delete]",
        summary: "Lists, shows, creates and deletes the rooms of a running server.",
        options: [
            Option(
                name: "--beside", value: "ROOM",
                help: "with 'create': on this room's media worker, so that 'move' takes everybody between the two"),
            Option(name: "--preset", value: "NAME", help: "with 'create': with the rules of this preset"),
        ] + ControlClient.options, maxOperands: 2,
        details: """
            The room's name follows 'show', 'create' and 'delete'.

            \(exitStatus)

            examples:
              martlet rooms --dev
              martlet rooms create studio --config /etc/martlet.yaml
              martlet rooms create studio-lobby --beside studio
            """)

    private static let participants = CommandSyntax(
        name: "participants", operands: "ROOM [OPTIONS]", summary: "Lists who is in a room.",
        options: ControlClient.options, maxOperands: 1, details: exitStatus)

    private static let kick = CommandSyntax(
        name: "kick", operands: "ROOM PARTICIPANT [OPTIONS]",
        summary: "Removes a participant, by identity or sid, from a room.",
        options: [
            Option(name: "--reason", value: "TEXT", help: "reason that the participant is given"),
            Option(name: "--ban", value: "SECONDS", help: "how long its identity may not rejoin"),
        ] + ControlClient.options, maxOperands: 2, details: exitStatus)

    private static let move = CommandSyntax(
        name: "move", operands: "ROOM PARTICIPANT OTHER [OPTIONS]",
        summary: "Moves a participant to the other room, with its tracks.",
        options: ControlClient.options, maxOperands: 3,
        details: """
            Between rooms of one media worker its connections go on ('martlet rooms create --beside' makes such a room). Otherwise its client
            opens new ones and publishes its tracks again, under other sids; the move of a client that cannot is refused.

            \(exitStatus)
            """)

    private static let policy = CommandSyntax(
        name: "policy", operands: "get | set | edit ROOM [OPTIONS]",
        summary: "Shows and changes the rules of a room while people talk.",
        options: [Option(name: "--dry-run", value: nil, help: "with 'set': only list whom the change would affect")]
            + ControlClient.options, maxOperands: .max,
        details: """
            'set' takes words of the form FIELD=VALUE. A VALUE that is valid JSON is read as JSON, anything else as text; 'FIELD=' lets
            the preset or the server decide again. 'edit' opens the policy in $EDITOR and applies what you have changed.

            \(exitStatus)

            examples:
              martlet policy set studio maxParticipants=20 audioOnly=true --dry-run
              martlet policy set studio 'videoCodecs=["vp8","h264"]' maxParticipants=
              EDITOR=nano martlet policy edit studio
            """)

    private static let events = CommandSyntax(
        name: "events", operands: "[--follow] [OPTIONS]", summary: "Shows what happened in rooms.",
        options: [
            Option(name: "--follow", value: nil, help: "continue with new events until interrupted"), room,
            Option(name: "--after", value: "ID", help: "begin after this event; 0: with the oldest that is kept"),
        ] + ControlClient.options,
        details: """
            Without --follow, all events that are kept are shown; with it, new events, or those after --after.
            On standard error, --follow reports when it is connected, and when earlier events are no longer kept.

            \(exitStatus)
            """)

    private static let sessions = CommandSyntax(
        name: "sessions", operands: "[OPTIONS]",
        summary: "Lists past stays, the latest departure first.",
        options: [
            room, Option(name: "--identity", value: "NAME", help: "of this identity only"),
            Option(name: "--limit", value: "NUMBER", help: "at most this many; default: 100"),
        ] + ControlClient.options, details: exitStatus)

    private static let jobs = CommandSyntax(
        name: "jobs", operands: "[VERB [NAME …]]",
        summary: "Lists, shows, creates, cancels or deletes jobs on a server's recordings.",
        options: [Option(name: "--recording", value: "RC", help: "with 'list': on this recording only")]
            + ControlClient.options, maxOperands: .max,
        details: """
            VERB is 'list' (the default), 'show', 'create', 'cancel' or 'delete'.
            'show', 'cancel' and 'delete' take the job, JB_…; 'create' takes the recording, RC_…, the kind of the job, and words of the
            form FIELD=VALUE with the fields of POST /v1/recordings/{recording}/jobs. 'delete' removes a job that has ended, with its
            file; 'cancel' ends one that waits or runs.

            kinds:
              composition   one MP4 file of everybody: layout (grid, speaker, presentation), width, height, frameRate, bitrate
              transcode     one file encoded again as MP4: file and bitrate, codec (h264, vp9), width, height, frameRate
              copy          one file in another container without transcoding: file, container (webm); no H.264

            \(exitStatus)

            examples:
              martlet jobs --dev
              martlet jobs create RC_0yQ5… composition layout=speaker width=1280 height=720 bitrate=2000000
              martlet jobs create RC_0yQ5… transcode file=TR_x3….000.mp4 codec=h264 bitrate=800000
              martlet jobs create RC_0yQ5… copy file=TR_x3….000.mp4 container=webm
            """)

    private static let reach = CommandSyntax(
        name: "reach", operands: "[OPTIONS]",
        summary: "Asks the media ports of a running server from here, as clients do.",
        options: ControlClient.options,
        details: """
            Run it where clients are: it shows without a browser whether UDP and TCP reach every address and port that the server announces.
            It sends a connectivity check to each, in rooms of pre-call checks, which appear in no list or event. It asks at most 16 media
            threads, or half of rooms.max_checks (20 by default) where that is less, and may leave out one that is busier than the others.

            Exit status: 0 each of these media threads answers over UDP, and over TCP if it announces that, 1 one does not, or the server
            refuses, 2 wrong command line, 3 the server cannot be reached.

            example:
              martlet reach --server https://rooms.example.org --config /etc/martlet/martlet.yaml
            """)

    static let completion = CommandSyntax(
        name: "completion", operands: "bash | zsh | fish",
        summary: "Prints a script that completes commands in a shell.",
        maxOperands: 1,
        details: """
            examples:
              source <(martlet completion bash)
              martlet completion zsh > "${fpath[1]}/_martlet"
              martlet completion fish > ~/.config/fish/completions/martlet.fish
            """)
}
