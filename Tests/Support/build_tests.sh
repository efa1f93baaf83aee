#!/usr/bin/env bash
# Builds products for tests in .build/tested, where tests, scenarios and the parts of a night share them: Tests/Support/build_tests.sh [PRODUCT…]
# One build for the server and for the tests of its modules: with assertions, open to @testable, and with the packet path optimised as in the shipped program
# (MARTLET_ONE_RUN in the manifest). It is in a separate folder, so that it does not alternate with that of `make run`. Nobody debugs these builds:
# without symbols for debuggers the compiler takes a tenth less time. The package manager finds tests through the index; the index of the system's
# modules is not needed.
set -euo pipefail
cd "$(dirname "$0")/../.."
export MARTLET_ONE_RUN=1
flags=(-c release --scratch-path .build/tested --explicit-target-dependency-import-check error)
flags+=(-Xswiftc -warnings-as-errors -Xswiftc -enable-testing -Xswiftc -assert-config -Xswiftc Debug -Xswiftc -gnone)
flags+=(-Xswiftc -index-ignore-system-modules -Xswiftc -index-ignore-clang-modules)
for product in "${@:-martletPackageTests}"; do
    swift build -q "${flags[@]}" --product "$product"
done
