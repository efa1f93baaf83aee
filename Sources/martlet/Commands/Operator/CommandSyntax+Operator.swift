extension CommandSyntax {
    /// Commands that speak to a running server.
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
            Behind 'show', 'create' and 'delete' stands the room's name.

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
            Option(name: "--ban", value: "SECONDS", help: "for how long its identity may not come back"),
        ] + ControlClient.options, maxOperands: 2, details: exitStatus)

    private static let move = CommandSyntax(
        name: "move", operands: "ROOM PARTICIPANT OTHER [OPTIONS]",
        summary: "Moves a participant to the other room, with its tracks.",
        options: ControlClient.options, maxOperands: 3,
        details: """
            Between rooms of one media worker its connections go on ('martlet rooms create --beside' makes such a room). Otherwise its client
            makes new ones and publishes its tracks anew, under other sids; one that cannot is refused.

            \(exitStatus)
            """)

    private static let policy = CommandSyntax(
        name: "policy", operands: "get | set | edit ROOM [OPTIONS]",
        summary: "Shows and changes the rules of a room while people talk.",
        options: [Option(name: "--dry-run", value: nil, help: "with 'set': only say whom it would concern")]
            + ControlClient.options, maxOperands: .max,
        details: """
            'set' takes FIELD=VALUE words: a VALUE that is JSON is taken as that, anything else as a text, and 'FIELD=' lets the preset or the
            server decide again. 'edit' opens the policy in $EDITOR and writes what you have changed.

            \(exitStatus)

            examples:
              martlet policy set studio maxParticipants=20 audioOnly=true --dry-run
              martlet policy set studio 'videoCodecs=["vp8","h264"]' maxParticipants=
              EDITOR=nano martlet policy edit studio
            """)

    private static let events = CommandSyntax(
        name: "events", operands: "[--follow] [OPTIONS]", summary: "Shows what happened in rooms.",
        options: [
            Option(name: "--follow", value: nil, help: "go on with what happens next, until interrupted"), room,
            Option(name: "--after", value: "ID", help: "begin after this event; 0: with the first that is kept"),
        ] + ControlClient.options,
        details: """
            Without --follow, all events that are kept are shown. With it, what happens from now on, or from --after on.
            Standard error says when --follow is connected, and where earlier events are no longer kept.

            \(exitStatus)
            """)

    private static let sessions = CommandSyntax(
        name: "sessions", operands: "[OPTIONS]",
        summary: "Lists past stays, last to leave first.",
        options: [
            room, Option(name: "--identity", value: "NAME", help: "of this identity only"),
            Option(name: "--limit", value: "NUMBER", help: "at most so many; default: 100"),
        ] + ControlClient.options, details: exitStatus)

    private static let jobs = CommandSyntax(
        name: "jobs", operands: "[VERB [NAME …]]",
        summary: "Lists, shows, creates, cancels or deletes jobs on a server's recordings.",
        options: [Option(name: "--recording", value: "RC", help: "with 'list': on this recording only")]
            + ControlClient.options, maxOperands: .max,
        details: """
            VERB is 'list', which is also meant without one, 'show', 'create', 'cancel' or 'delete'.
            Behind 'show', 'cancel' and 'delete' stands the job, JB_…, behind 'create' the recording, RC_…, the kind of the job, and
            FIELD=VALUE words as POST /v1/recordings/{recording}/jobs has them. A job that is over is deleted with the file that it has
            made; one that is not is cancelled.

            kinds:
              composition   one MP4 file of everybody: layout (grid, speaker, presentation), width, height, frameRate, bitrate
              transcode     one file compressed anew as MP4: file and bitrate, codec (h264, vp9), width, height, frameRate
              copy          one file in another container with nothing compressed anew: file, container (webm); no H.264

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
            Run it where clients are: it shows whether UDP and TCP pass to every address and port that the server announces, without a
            browser. It sends a connectivity check to each, in rooms of pre-call checks (rooms.max_checks), which are in no list or event. A
            media thread that has more to do than the others may not be asked.

            Exit status: 0 each media thread answers over UDP, and over TCP where it announces that, 1 one does not, or the server refuses,
            2 wrong command line, 3 the server cannot be reached.

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
