# Most people need two commands: `make run` and `make test`. Each installs what is missing and says so.
SECONDS_PER_TARGET ?= 30
STRICT := --explicit-target-dependency-import-check error -Xswiftc -warnings-as-errors
SWIFT_FILES := Package.swift Sources Tests LoadTests

.PHONY: run build package test bench scenarios interop conformance matrix loadtest compare busy recorded links format lint sanitize fuzz nightly rolling fresh docs clean

## Build for release, serve on loopback with a development key, print the URL of the console page.
run: build
	.build/release/martlet serve --dev

build:
	Tests/Support/install.sh build
	swift build $(STRICT) -c release --product martlet

## A Debian package, its SBOM and symbols for debuggers, in .build/package.
package:
	Tests/Support/install.sh package
	swift build $(STRICT) -c release --product martlet
	Packaging/build.sh deb

## All tests: unit, architecture, simulation, integration, and interop with real browsers and encoders.
test:
	@Tests/Support/run_tests.sh

## What each step of a packet costs, checked against LoadTests/Benchmarks/thresholds.json: make bench ONLY=forward
bench:
	Tests/Support/install.sh build
	swift build $(STRICT) -c release --product bench
	.build/release/bench $(if $(ONLY),--only "$(ONLY)")

## Interop tests only, against an existing release build: make interop ONLY=test_chromium.py
interop:
	Tests/Support/install.sh test
	swift build $(STRICT) -c release --product martlet
	swift build $(STRICT) -c release --product bench
	.venv/bin/python -m pytest Tests/InteropTests/$(ONLY) -v --color=no

## Test a server against a protocol, martlet.v1 or livekit: make conformance PROTOCOL=livekit URL=http://127.0.0.1:7880 KEY=devkey SECRET=…
conformance:
	Tests/Support/install.sh test
	.venv/bin/python Tests/InteropTests/conformance $(PROTOCOL) $(URL) $(KEY) $(SECRET)

## Every publisher with every player, frames decoded by each pair; the table in .build/matrix. Needs root: make matrix ONLY="AV1-L3T3 Firefox"
matrix:
	Tests/Support/install.sh test
	swift build $(STRICT) -c release --product martlet
	.venv/bin/python Tests/InteropTests/matrix/matrix.py $(ONLY)

## Start a server and load it: make loadtest SCENARIO=webinar ARGS="--subscribers 500 --seconds 60"
loadtest:
	Tests/Support/install.sh load
	swift build $(STRICT) -c release --product martlet
	swift build $(STRICT) -c release --product loadtest
	LoadTests/run.sh $(or $(SCENARIO),webinar) $(ARGS)

## Impaired links in virtual time, eight seeds each: distributions, what a seed breaks, plots in .build/scenarios: make scenarios SEEDS="0 10"
scenarios:
	Tests/Support/install.sh load
	Tests/Support/build_tests.sh
	Tests/Support/scenarios.py .build/tested/release/martletPackageTests.xctest $(CURDIR)/.build/scenarios $(SEEDS)

## Martlet and Janus in turn over the same scenarios: one table with ratios, one page with a plot in .build/compare. Needs root.
compare:
	Tests/Support/install.sh compare
	swift build $(STRICT) -c release --product martlet
	swift build $(STRICT) -c release --product loadtest
	LoadTests/compare.sh

## Packets per second that one media thread carries at 85 % of a core, Martlet and Janus in turn. Needs root: make busy
busy:
	Tests/Support/install.sh compare
	swift build $(STRICT) -c release --product martlet
	swift build $(STRICT) -c release --product loadtest
	LoadTests/busy.sh

## What recording a hundred tracks costs, and how it affects their calls, with and without recordings in turn: make recorded ARGS="--rounds 3"
recorded:
	Tests/Support/install.sh test
	Tests/Support/install.sh load
	swift build $(STRICT) -c release --product martlet
	swift build $(STRICT) -c release --product loadtest
	.venv/bin/python LoadTests/recording.py $(ARGS)

## Real browsers over emulated links, some cases also with Janus; plots in .build/links. Needs root: make links ONLY="step loss-2" ROUNDS=1
links: ROUNDS ?= 5
links:
	Tests/Support/install.sh test
	Tests/Support/install.sh compare
	swift build $(STRICT) -c release --product martlet
	swift build $(STRICT) -c release --product loadtest
	.venv/bin/python LoadTests/Links/links.py --rounds $(ROUNDS) $(ONLY)

format:
	swift format --in-place --recursive $(SWIFT_FILES)

lint:
	swift format lint --strict --recursive $(SWIFT_FILES)

## The Swift tests under AddressSanitizer, then ThreadSanitizer.
sanitize:
	Tests/Support/install.sh build
	Tests/Support/sanitize.sh address
	Tests/Support/sanitize.sh thread

## Every fuzz target for SECONDS_PER_TARGET seconds each.
fuzz:
	Tests/Support/install.sh build
	Tests/Fuzz/run.sh $(SECONDS_PER_TARGET)

## The tests that take hours: sanitizers, ten minutes per fuzz target, benchmark thresholds, many seeds and rooms, churn, a soak. The last line is the verdict:
## make nightly PARTS="fuzz soak" FUZZ_SECONDS=60 SOAK_SECONDS=120; continue an interrupted one with: make nightly CONTINUE=1
nightly:
	@Tests/Support/nightly.sh $(PARTS)

## Two servers behind a small proxy are restarted one after the other while fifty members are in ten meetings: how long each was without media.
rolling:
	Tests/Support/install.sh test
	swift build $(STRICT) -c release --product martlet
	swift build $(STRICT) -c release --product loadtest
	.venv/bin/python Tests/Support/rolling.py

## `make run`, then .ci/run, each in a new Debian 12 with a Swift toolchain and a clone of the last commit: an hour or more. Needs root.
fresh:
	Tests/Support/install.sh test
	Tests/Support/fresh.sh run
	Tests/Support/fresh.sh test

## Symbol graphs and the DocC pages of every module, into .build/docs.
docs:
	Tests/Support/docs.sh

clean:
	swift package clean
