#!/usr/bin/env python3
"""Prints the peak resident memory of `rlx run` beside what it should stay under.

usage: bench/peak_memory.py RLX MODEL [further options of rlx run]

The bound is the mapped weight files, what the plan takes besides (arena and constants), and 32 MiB
for the program, the tokenizer and the graph. The exit code is 1 when the peak is above it.
"""

import json
import os
import re
import subprocess
import sys

MIB = 1 << 20
ALLOWANCE_BYTES = 32 * MIB
# Options of `rlx run` that change the plan; `rlx plan` takes them too.
PLAN_OPTIONS = ("-c", "--context", "-b", "--batch", "-t", "--threads", "--cache-type", "--activations")


def plan(rlx, model, options):
    chosen = []
    for option, value in zip(options, options[1:]):
        if option in PLAN_OPTIONS:
            chosen += [option, value]
    return json.loads(subprocess.check_output([rlx, "plan", model, "--json", *chosen]))


def measure_peak(command):
    """The largest resident size of a command in bytes, and its statistics."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    statistics = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode != 0:
        sys.exit(f"'{' '.join(command)}' ended with {process.returncode}:\n{statistics}")
    return usage.ru_maxrss * 1024, statistics


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    rlx, model, options = sys.argv[1], sys.argv[2], sys.argv[3:]
    report = plan(rlx, model, options)
    files_bytes = sum(os.path.getsize(name) for name in report["weight_files"])
    constants_bytes = report["segments"]["weights"]["bytes"] - report["mapped_weight_bytes"]
    planned_bytes = report["arena_bytes"] + constants_bytes
    bound_bytes = files_bytes + planned_bytes + ALLOWANCE_BYTES

    # A prompt that fills most of a batch, so that the arena is really touched.
    command = [rlx, "run", model, "-p", "in the beginning " * 40, "-n", "16", "--temp", "0", *options]
    peak_bytes, statistics = measure_peak(command)
    speed = re.search(r"generated.*", statistics)
    for name, size in (("weight files", files_bytes), ("arena and constants", planned_bytes),
                       ("allowance", ALLOWANCE_BYTES), ("bound", bound_bytes), ("peak", peak_bytes)):
        print(f"{name:<20} {size:>16,} B  {size / MIB:>10.1f} MiB")
    print(speed.group(0) if speed else statistics)
    if peak_bytes > bound_bytes:
        sys.exit(f"The peak is {peak_bytes - bound_bytes:,} B above the bound.")


if __name__ == "__main__":
    main()
