#!/usr/bin/env python3
"""Checks which folder of src/ includes which, against the table below.

Reads every #include line of src/ and include/. A folder may include itself, the installed headers
and the folders that its row names; nothing is inherited from those. The longest path that has a row
decides, so a row may also stand for a subfolder or for one file; what a row allows it allows with
all below it. Tests and what they share sit beside the code ("_test", "_tester" or "_testing" in the
name) and may look at anything: what they show often needs two layers. Nothing else sees them.

usage: tools/check_layers.py [ROOT]
"""

import os
import re
import sys

TENSOR = ["base", "tensor"]
GRAPH = ["base", "tensor", "ir", "ops"]

# Each row: (what it may include, why).
LAYERS = {
    "base": ([], "knows nothing of tensors"),
    "tensor": (["base"], "values: dtypes, extents, layouts"),
    "ir": (TENSOR, "the graph and the op contract, without any op"),
    "ops": (TENSOR + ["ir"], "what each op means"),
    "passes": (GRAPH, "graph in, graph out; knows no target"),
    "autodiff": (GRAPH, "graph in, graph out; knows no target"),
    "memory": (["base"], "plans plain intervals, so that it can be fuzzed and used alone"),
    "program": (TENSOR + ["ir"], "the compiled program as plain data, with ops as opaque values"),
    "program/weight_store.h": ([], "weights by name: what a model's file offers a program"),
    "compiler": (
        GRAPH + ["passes", "memory", "program"],
        "from a graph to a program; needs no device, so it knows no backend",
    ),
    "runtime": (
        TENSOR + ["program"],
        "runs programs; a program is complete, so it needs neither passes nor planner",
    ),
    "backends/reference": (
        GRAPH + ["compiler", "program", "runtime"],
        "compile side sees the compiler, run side the runtime; no frontend, no model, no sibling",
    ),
    "backends/cpu": (
        GRAPH + ["compiler", "program", "runtime"],
        "compile side sees the compiler, run side the runtime; no frontend, no model, no sibling",
    ),
    "backends/cpu/kernel.h": (GRAPH, "the kernel interface: typed views, no compiler, no runtime"),
    "backends/cpu/kernels": (
        GRAPH + ["backends/cpu/kernel.h"],
        "kernels are functions over views and can be tested without a program",
    ),
    "frontends/gguf": (GRAPH, "a file to weights or a graph; knows no other format"),
    "frontends/safetensors": (GRAPH, "a file to weights or a graph; knows no other format"),
    "frontends/npy": (TENSOR, "a file to one tensor and back"),
    "models": (
        GRAPH + ["frontends/gguf", "frontends/safetensors", "program/weight_store.h"],
        "config to graph, one family a file; reads both formats of a language model",
    ),
    "text": (TENSOR, "tokenizers and samplers; knows no graph"),
    "templates": (["base", "text"], "values and text; knows no tensor, no tokenizer and no model"),
    "api": (["*"], "the installed library: the one place that sees everything"),
}

# Other people's headers, by the prefix of the include, and who may see them.
VENDORS = {
    "CLI/": [],  # the command line alone, which is outside src/
    "fmt/": ["*"],
    "hwy/": ["backends/cpu/kernels"],
    "nlohmann/": ["frontends", "models", "text", "templates", "api"],
    "pcre2": ["text"],
    "utf8proc": ["text"],
    "cuda": ["backends/cuda"],
    "vulkan/": ["backends/vulkan"],
    "volk": ["backends/vulkan"],
    "gtest/": [],  # tests alone
    "gmock/": [],
}

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
SOURCE = (".h", ".cpp", ".cc", ".cu", ".inc")
TEST = re.compile(r"_(test|tester|testing)(_\w+)?\.\w+$")


def is_under(path, folder):
    return folder == "*" or path == folder or path.startswith(folder + "/")


def find_row(path, rows):
    """The longest row that `path` (relative to src/) is under, or None."""
    matches = [row for row in rows if is_under(path, row)]
    return max(matches, key=len, default=None)


def check_table(layers):
    """The table's own faults: rows that name no row, and rows that include each other in a circle."""
    faults = []
    for row, (allowed, _) in layers.items():
        for other in allowed:
            if other != "*" and other not in layers:
                faults.append(f"table: {row} may include '{other}', which has no row")

    def reaches(start, goal, seen):
        for other in layers.get(start, ([], ""))[0]:
            if other == goal:
                return True
            if other not in seen:
                seen.add(other)
                if reaches(other, goal, seen):
                    return True
        return False

    for row in layers:
        if reaches(row, row, set()):
            faults.append(f"table: {row} may include itself through other rows")
    return faults


def check_include(path, quote, target, layers=LAYERS, vendors=VENDORS):
    """Why the file src/`path` may not include `target`, or None."""
    vendor = next((v for v in vendors if target.startswith(v)), None)
    if vendor is not None and find_row(target, layers) is None:
        if TEST.search(path) or any(is_under(path, row) for row in vendors[vendor]):
            return None
        return f"'{target}' belongs to {', '.join(vendors[vendor]) or 'no folder of src/'}"
    if quote == "<":
        return None
    if target.startswith("rlx/"):
        return None
    if TEST.search(target) and not TEST.search(path):
        return f"'{target}' is for tests alone"
    row = find_row(target, layers)
    if row is None:
        return f"'{target}' is not a path from src/ that starts with a folder of the layer table"
    own = find_row(path, layers)
    if own is None:
        return "the file is in no folder of the layer table"
    if row == own or TEST.search(path):
        return None
    allowed, why = layers[own]
    if any(is_under(row, other) for other in allowed):
        return None
    # A file with a row of its own stays part of its folder.
    if is_under(row, own):
        return None
    return f"{own} may not include {row} ({own}: {why}); it may include {', '.join(allowed) or 'no folder'}"


def check_public_include(quote, target):
    """Why an installed header may not include `target`, or None."""
    if quote == '"':
        if target.startswith("rlx/"):
            return None
        return f"an installed header may include only rlx/ headers, not '{target}'"
    if re.fullmatch(r"[a-z0-9_]+(\.h)?", target) and target not in ("fmt.h", "pcre2.h", "utf8proc.h"):
        return None
    return f"an installed header may include only standard headers, not <{target}>"


def list_sources(root):
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            if name.endswith(SOURCE):
                yield os.path.join(folder, name)


def check_tree(root):
    faults = check_table(LAYERS)
    for part in ("src", "include"):
        top = os.path.join(root, part)
        for file in list_sources(top):
            path = os.path.relpath(file, top).replace(os.sep, "/")
            with open(file, encoding="utf-8", errors="replace") as lines:
                for number, line in enumerate(lines, 1):
                    match = INCLUDE.match(line)
                    if not match:
                        continue
                    if part == "src":
                        fault = check_include(path, *match.groups())
                    else:
                        fault = check_public_include(*match.groups())
                    if fault:
                        faults.append(f"{part}/{path}:{number}: {fault}")
    return faults


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..")
    faults = check_tree(os.path.normpath(root))
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        sys.exit(f"check_layers: {len(faults)} includes or rows are against the layer table")
    print("check_layers: every include follows the layer table")


if __name__ == "__main__":
    main()
