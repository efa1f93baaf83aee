#!/usr/bin/env python3
"""Prints a software bill of materials (SPDX 2.3, JSON) of Martlet.

  sbom.py --version V --program FILE                  the program, what it contains, and the Debian packages of all libraries that it loads
  sbom.py --version V --program FILE --status STATUS  the same with every package of an image, whose /var/lib/dpkg/status is given
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import urllib.parse

LIST = pathlib.Path(__file__).with_name("runtime-packages")


def listed():
    """{name: (kind, licence)} of runtime-packages."""
    lines = [line.split(None, 3) for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return {name: (kind, licence.replace("_", " ")) for kind, name, licence, _ in lines}


def installed(status):
    """The paragraphs of dpkg's status file, of packages that are installed."""
    for paragraph in pathlib.Path(status).read_text(errors="replace").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if re.match(r"[A-Z][A-Za-z-]*: ", line))
        if fields.get("Status", "").endswith(" installed"):
            yield fields


def loaded(program):
    """The names of the Debian packages that own the libraries which the program loads, those of libraries' libraries, too."""
    lines = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout.splitlines()
    missing = [line.strip() for line in lines if "not found" in line]
    assert not missing, missing
    # dpkg knows the merged /usr by its old names, too.
    paths = {os.path.realpath(match[1]) for line in lines if (match := re.search(r"(/\S+) \(0x", line))}
    owners = subprocess.run(["dpkg", "-S", *paths, *(path.removeprefix("/usr") for path in paths)], capture_output=True, text=True).stdout
    owned = {path: line.split(":")[0] for line in owners.splitlines() for path in [os.path.realpath(line.split(": ", 1)[1])]}
    assert paths <= owned.keys(), paths - owned.keys()
    return {owned[path] for path in paths}


def toolchain():
    text = subprocess.run(["swift", "--version"], check=True, capture_output=True, text=True).stdout
    return re.search(r"Swift version (\S+)", text)[1]


def identifier(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def package(name, version, licence, purl, supplier, comment=None):
    made = {
        "SPDXID": identifier(name), "name": name, "versionInfo": version, "supplier": supplier, "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": licence, "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}],
    }
    return {**made, "comment": comment} if comment else made


def debian(fields, known):
    quoted = {key: urllib.parse.quote(fields[key], safe="") for key in ("Package", "Version", "Architecture")}
    source = fields.get("Source", fields["Package"])
    return package(
        fields["Package"], fields["Version"], known.get(fields["Package"], (None, "NOASSERTION"))[1],
        f"pkg:deb/debian/{quoted['Package']}@{quoted['Version']}?arch={quoted['Architecture']}&distro=bookworm",
        "Organization: Debian", f"source package: {source}; licences: /usr/share/doc/{fields['Package']}/copyright")


def document(version, program, status):
    known = listed()
    wanted = None if status else loaded(program) | {name for name, (kind, _) in known.items() if kind == "needed"}
    packages = [fields for fields in installed(status or "/var/lib/dpkg/status") if wanted is None or fields["Package"] in wanted]
    swift = toolchain()
    root = package("martlet", version, "Apache-2.0", f"pkg:generic/martlet@{version}", "Organization: Martlet")
    root["primaryPackagePurpose"] = "APPLICATION"
    root["checksums"] = [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()}]
    inside = [
        package(name, swift, licence, f"pkg:github/swiftlang/{name}@swift-{swift}-RELEASE", "Organization: Swift project", "linked statically")
        for name, (kind, licence) in known.items() if kind == "static"
    ]
    others = {fields["Package"]: debian(fields, known) for fields in sorted(packages, key=lambda fields: fields["Package"])}
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", root["SPDXID"])]
    relations += [(root["SPDXID"], "CONTAINS", one["SPDXID"]) for one in inside]
    for name, one in others.items():
        kind = known.get(name, ("", ""))[0]
        if kind in ("optional", "jobs"):
            relations.append((one["SPDXID"], "OPTIONAL_DEPENDENCY_OF", root["SPDXID"]))
        elif kind or wanted is not None:
            relations.append((root["SPDXID"], "DEPENDS_ON", one["SPDXID"]))
        else:
            relations.append(("SPDXRef-DOCUMENT", "DESCRIBES", one["SPDXID"]))
    made = [root, *inside, *others.values()]
    digest = hashlib.sha256(json.dumps([made, relations]).encode()).hexdigest()
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", 0)) or int(pathlib.Path(program).stat().st_mtime)
    created = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"martlet-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/martlet-{version}-{digest}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: Packaging/sbom.py"]},
        "packages": made,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations],
    }


arguments = argparse.ArgumentParser()
arguments.add_argument("--version", required=True)
arguments.add_argument("--program", required=True)
arguments.add_argument("--status")
given = arguments.parse_args()
print(json.dumps(document(given.version, given.program, given.status), indent=1))
