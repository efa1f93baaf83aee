"""The control API is what its document says, judged by a foreign program."""
import os
import pathlib
import re
import subprocess
import sys

from conftest import SECONDS, running
from support.tokens import admin_token


#: `make test` tries each operation's examples and some generated requests; at night some twelve thousand more, most of which the schemas forbid.
EXAMPLES = os.environ.get("SCHEMA_EXAMPLES", "12")
PHASES = os.environ.get("SCHEMA_PHASES", "examples,fuzzing")


def test_I9_schemathesis_finds_no_deviation_from_the_openapi_document(tmp_path):
    """Requests that the schemas allow are accepted, those that they forbid are refused, and every response is as described. `make nightly` makes more."""
    extra = f"recording:\n  directory: {tmp_path}/recordings\n  reserve: 0\nplayback:\n  directory: {tmp_path}\n"
    with running(extra=extra) as server:
        judge(server, tmp_path)


def judge(server, tmp_path):
    document = tmp_path / "openapi.json"
    document.write_text(server.request("GET", "/openapi.json")[2])
    # A tag that is well-formed and another one than the policy's is refused, as it must be.
    (tmp_path / "schemathesis.toml").write_text(
        '[checks.positive_data_acceptance]\nexpected-statuses = ["2xx", "401", "403", "404", "409", "412", "429"]\n'
        # A text beyond its bound may make a body beyond that of all bodies, which is refused before it is read.
        '[checks.negative_data_rejection]\nexpected-statuses = ["400", "401", "403", "404", "405", "409", "413", "415", "422", "428", "429"]\n'
        # That a name in the body is that of the path, no schema can say.
        '[[operations]]\ninclude-method = "PUT"\ninclude-path = "/v1/rooms/{room}"\n'
        'checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "409", "412", "429"]\n')
    command = [
        pathlib.Path(sys.executable).with_name("schemathesis"), "run", document, "--url", server.url, "--no-color",
        "--header", f"Authorization: Bearer {admin_token()}",
        # An event stream has no end: pages of events are what is looked at here.
        "--header", "Accept: application/json",
        # A server that drains refuses every new room with 503, as it must: nothing could be asked of it any more.
        "--exclude-path", "/v1/node/drain", "--phases", PHASES, "--max-examples", EXAMPLES, "--seed", "1", "--continue-on-failure"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS - 10, cwd=tmp_path)
    cases = re.search(r"(\d+) generated", done.stdout)
    print(f"figures: {cases and cases[1]} requests")
    assert server.api("GET", "/v1/rooms")[0] == 200, "what was called did not revoke the caller's token"
    assert done.returncode == 0, done.stdout[-16000:].replace(admin_token(), "…") + done.stderr[-1000:]
    assert int(cases[1]) > 500, "the operations were reached"
    page = server.get_private("/metrics")[1]
    assert 'martlet_http_responses_total{class="5xx"} 0' in page.splitlines()
