#!/usr/bin/env python3
"""Times tokenizing beside the `tokenizers` package from PyPI, on one text, in alternating rounds.

usage: bench/compare_tokenizers.py RLX MODEL [TEXT_FILE] [--rounds N]

MODEL is a folder that `rlx tokenize` takes, with a tokenizer.json, which the peer reads. Without a
file, the text is a megabyte of this project's own pages. The time of rlx is that of the command with
the text less that with one letter, so writing the ids counts for it; the peer's is that of one call.
The exit code is 1 when the ids differ.
"""

import argparse
import glob
import os
import statistics
import subprocess
import sys
import time

TEXT_BYTES = 1_000_000


def read_pages():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    pages = sorted(glob.glob(os.path.join(root, "docs", "*.md"))) + [os.path.join(root, "README.md")]
    text = ""
    for name in pages:
        with open(name, encoding="utf-8") as page:
            text += page.read()
    return (text * (TEXT_BYTES // len(text) + 1))[:TEXT_BYTES]


def run_rlx(rlx, model, text):
    start = time.perf_counter()
    ids = subprocess.check_output([rlx, "tokenize", model, "-"], input=text.encode())
    return time.perf_counter() - start, ids


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rlx")
    parser.add_argument("model")
    parser.add_argument("text", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    try:
        import tokenizers
    except ImportError:
        sys.exit("The peer is missing; install it with: pip install tokenizers")
    peer = tokenizers.Tokenizer.from_file(os.path.join(options.model, "tokenizer.json"))
    peer.no_truncation()
    peer.no_padding()
    if options.text:
        with open(options.text, encoding="utf-8") as file:
            text = file.read()
    else:
        text = read_pages()

    ours, theirs, ratios = [], [], []
    for _ in range(options.rounds):
        empty, _ = run_rlx(options.rlx, options.model, "a")
        whole, ids = run_rlx(options.rlx, options.model, text)
        ours.append(whole - empty)
        start = time.perf_counter()
        expected = peer.encode(text).ids
        theirs.append(time.perf_counter() - start)
        ratios.append(theirs[-1] / ours[-1])
        if [int(id) for id in ids.split()] != expected:
            sys.exit(f"The ids differ: rlx gives {len(ids.split())}, tokenizers {len(expected)}.")
    size = len(text.encode()) / 1e6
    print(f"{size:.2f} MB, {len(expected):,} tokens, tokenizers {tokenizers.__version__}, "
          f"{options.rounds} rounds")
    for name, seconds in (("rlx", ours), ("tokenizers", theirs)):
        middle = statistics.median(seconds)
        print(f"{name:<12}{middle * 1e3:8.1f} ms  ({min(seconds) * 1e3:.1f} to "
              f"{max(seconds) * 1e3:.1f})  {size / middle:7.2f} MB/s")
    print(f"ratio       {statistics.median(ratios):8.2f}x ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
