import LoadGenerator

@main
struct Main {
    static func main() async { await CommandLineTool.run(CommandLine.arguments) }
}
