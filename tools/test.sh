#!/usr/bin/env bash
# Installs what the build needs, builds everything as users get it (the release preset, the same
# build as tools/demo.sh), and runs all tests. Closes with ctest's summary.
#
# usage: tools/test.sh [CTEST_OPTION...]     for example: tools/test.sh -L fast -R gguf
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/build.sh
exec ctest --preset release --parallel "$(nproc)" --no-tests=error "$@"
