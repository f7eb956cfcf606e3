#!/usr/bin/env python3
"""Tests of bench/compare_llama_cpp.py with a stand-in for llama-bench.

usage: tests/cli/compare_llama_cpp_test.py RLX [unittest arguments], from the root of the source tree
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

RLX = ""
MODEL = "models/demo/demo-Q8_0.gguf"
SCRIPT = "bench/compare_llama_cpp.py"
PEER = """#!/bin/sh
echo "llama-bench: benchmark 1/2: starting" >&2
echo "llama-bench: benchmark 1/2: warmup prompt run" >&2
echo "llama-bench: benchmark 1/2: prompt run 1/1" >&2
echo '[{"n_prompt": 8, "n_gen": 0, "avg_ts": 2.0}, {"n_prompt": 0, "n_gen": 4, "avg_ts": %s}]'
"""


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="rlx_compare_test_")
        self.addCleanup(self.folder.cleanup)
        self.peers = [self.make_peer("slow", "0.5"), self.make_peer("fast", "1.0")]

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def make_peer(self, name, speed):
        with open(self.path(name), "w") as file:
            file.write(PEER % speed)
        os.chmod(self.path(name), 0o755)
        return self.path(name)

    def compare(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, "--rlx", RLX, *arguments],
                              capture_output=True, text=True, timeout=120)

    def test_ratios_are_to_the_faster_peer_and_rounds_add_up_over_calls(self):
        common = ["-p", "8", "-n", "4", "-t", "1", "--rounds", "1", "--samples",
                  self.path("samples"), MODEL]
        for peer in self.peers:
            common += ["--peer", peer]
        for _ in range(2):
            result = self.compare(*common, "--out", self.path("table.md"))
            self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path("samples")) as file:
            samples = [json.loads(line) for line in file]
        self.assertEqual(len(samples), 2)
        self.assertEqual(len(samples[0]["peers"]), 2)
        with open(self.path("table.md")) as file:
            table = file.read()
        decode = table[table.index("## Decode"):table.index("## Prefill")]
        self.assertIn("| 1.0 (1.0 to 1.0) |", decode)
        self.assertTrue(decode.rstrip().endswith("| 2 |"), decode)
        for title in ("Load", "First token", "Peak resident", "Floors"):
            self.assertIn(f"## {title}", table)

    def test_a_failing_peer_is_named(self):
        broken = self.path("broken")
        with open(broken, "w") as file:
            file.write("#!/bin/sh\nexit 3\n")
        os.chmod(broken, 0o755)
        result = self.compare("-p", "8", "-n", "4", "-t", "1", "--rounds", "1", "--peer", broken,
                              MODEL)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(broken, result.stderr)

    def test_nothing_to_compare_with_is_an_error(self):
        self.assertIn("--peer", self.compare(MODEL).stderr)


if __name__ == "__main__":
    RLX = sys.argv.pop(1)
    unittest.main()
