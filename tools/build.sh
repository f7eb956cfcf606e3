#!/usr/bin/env bash
# Installs what the build needs, then configures and builds the release preset in build/release.
#
# usage: tools/build.sh [TARGET...]     all targets when none is named
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/install_deps.sh
cmake --preset release
if (($# > 0)); then
  cmake --build --preset release --target "$@"
else
  cmake --build --preset release
fi
