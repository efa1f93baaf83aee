import EdgeSupport

extension OperatorCommand {
    private static let words = ["list", "show", "create", "cancel", "delete"]

    /// Jobs on finished recordings: lists, creates or removes them.
    func jobs(_ output: @escaping (String) -> Void) throws(CommandError) {
        switch given.operands.first {
        case nil, "list":
            _ = given.operands.isEmpty ? [] : try operands("list")
            let answer = try client.all("/jobs", "jobs", only: ("recording", given["--recording"]))
            show(answer, output, Self.table(ofJobs:))
        case "show":
            let job = try operands("show", "JOB")[1]
            show(try client.call("GET", ControlClient.path("jobs", job)), output) { Self.pretty($0) }
        case "create":
            let words = try operands("create", "RECORDING", "KIND", andMore: true)
            let request = try members(of: words.dropFirst(3), ["kind": .text(words[2])])
            let path = ControlClient.path("recordings", words[1], "jobs")
            show(try client.call("POST", path, JSONCoding.encode(JSONValue.object(request))), output) {
                "job \($0["sid"].cell) was created"
            }
        case "cancel":
            let job = try operands("cancel", "JOB")[1]
            show(try remove(job, which: "open"), output) { _ in "job \(job) was cancelled" }
        case "delete":
            let job = try operands("delete", "JOB")[1]
            show(try remove(job, which: "ended"), output) { _ in "job \(job) was deleted with its file" }
        case let word?:
            throw syntax.wrong("'\(word)' is not expected here\(Spelling.hint(for: word, among: Self.words))")
        }
    }

    /// If the job has just changed its state, it is not the one that was meant: the server then refuses.
    private func remove(_ job: String, which state: String) throws(CommandError) -> ControlClient.Answer {
        try client.call("DELETE", ControlClient.path("jobs", job) + ControlClient.query(["state": state]))
    }

    private static func table(ofJobs value: JSONValue) -> String {
        var table = TextTable("JOB", "RECORDING", "KIND", "STATE", "DONE", "CREATED", "RESULT")
        for job in value["jobs"].elements {
            let result = job["file"]["name"].cell
            table.add(
                job["sid"].cell, job["recording"].cell, job["kind"].cell, job["state"].cell,
                percent(job["progress"]), time(job["createdAt"]), result.isEmpty ? job["fault"].cell : result)
        }
        return table.text
    }

    /// A share in percent. Whatever the server sends, the result is from 0 to 100 %.
    static func percent(_ share: JSONValue) -> String {
        let part: Double
        switch share {
        case .integer(let whole): part = Double(whole)
        case .number(let number): part = number
        default: return ""
        }
        // NaN is not above zero either.
        return "\(Int((part > 0 ? min(part, 1) : 0) * 100))%"
    }
}
