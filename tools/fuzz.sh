#!/bin/sh
# Builds the fuzz targets and runs each one for a while: tools/fuzz.sh [SECONDS] [TARGET...]
# SECONDS is 10 unless given; without a TARGET all run. New inputs are kept in build/fuzz/corpus, an
# input that breaks a target in build/fuzz/artifacts; once understood, it belongs in
# tests/fuzz/corpus/TARGET, where every build with tests replays it.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-10}
[ $# -gt 0 ] && shift

cmake --preset fuzz > /dev/null
if [ $# -eq 0 ]; then
  for source in tests/fuzz/*_fuzzer.cpp; do
    name=$(basename "$source" _fuzzer.cpp)
    set -- "$@" "$name"
  done
fi

cmake --build --preset fuzz --target $(printf 'fuzz_%s ' "$@")

mkdir -p build/fuzz/artifacts
failed=""
for name in "$@"; do
  mkdir -p "build/fuzz/corpus/$name"
  log="build/fuzz/artifacts/$name.log"
  if "build/fuzz/tests/fuzz/fuzz_$name" "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name" \
    "-max_total_time=$seconds" -max_len=16384 -timeout=10 -malloc_limit_mb=256 -rss_limit_mb=2048 \
    "-artifact_prefix=build/fuzz/artifacts/$name-" -verbosity=0 -print_funcs=0 \
    -print_final_stats=1 > "$log" 2>&1; then
    echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, all taken well"
  else
    tail -n 60 "$log"
    failed="$failed $name"
  fi
done
if [ -n "$failed" ]; then
  echo "Broken:$failed; the inputs are in build/fuzz/artifacts." >&2
  exit 1
fi
