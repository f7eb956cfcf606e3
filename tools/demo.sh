#!/usr/bin/env bash
# Installs what the build needs, builds the rlx command, and lets the demonstration model write.
# Only the text goes to stdout; the output of the set-up and the statistics go to stderr.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/build.sh tools/rlx >&2
exec build/release/tools/rlx run models/demo/demo-Q8_0.gguf -p "In the beginning" -n 64 --temp 0
