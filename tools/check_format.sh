#!/usr/bin/env bash
# Fails when a tracked C++ source is not laid out as .clang-format says.
#
# usage: tools/check_format.sh [--fix]     --fix rewrites the files instead
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The layout differs between versions of clang-format, so there is one: Debian 12's.
mode=(--dry-run -Werror)
case "${1-}" in
  "") ;;
  --fix) mode=(-i) ;;
  *) echo "check_format: unknown option '$1'; expected --fix" >&2; exit 2 ;;
esac
git ls-files -z -- '*.cpp' '*.h' ':!third_party' |
  xargs -0 --no-run-if-empty clang-format-14 "${mode[@]}"
