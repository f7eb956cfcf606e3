#!/usr/bin/env python3
"""Checks the rules of style that a layout tool cannot: length, ASCII, to-dos, paths, headers, CMake.

Reads the tracked text files. Data (tests/data, models) and other people's sources (third_party) are
not ours to judge. Each fault names the file, the line and the rule.

usage: tools/check_style.py [ROOT]
"""

import os
import re
import subprocess
import sys

MAX_LINES = 1000

# Files that may be longer, each with its reason. A table is data that happens to be source.
LONG_FILES = {
    "src/tensor/packed_grids.cpp": "the code books of the packed block formats",
}

TEXT = re.compile(r"\.(h|cpp|cu|comp|def|inc|py|sh|cmake|in|md|json|toml|yml)$|(^|/)(CMakeLists\.txt|run|LICENSE)$")
CODE = re.compile(r"\.(h|cpp|cu|comp|def|inc|py|sh|cmake|in)$|(^|/)(CMakeLists\.txt|run)$")
# What configures the build; a script that a test runs may look for files.
CMAKE = re.compile(r"^cmake/|(^|/)CMakeLists\.txt$")
SKIPPED = ("tests/data/", "models/", "third_party/", "tests/fuzz/corpus/")

TODO = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
TODO_WITH_CONDITION = re.compile(r"\bTODO\((when|once|if|until) [^)]+\): \S")
# A path of one person's machine. "work/" alone is a segment, "build/tmp/" is not the root's.
MACHINE_PATH = re.compile(r"(?<![\w./})*$-])/(" + "home|root|tmp|work|Users|mnt" + r")/\w")
DIRECTORY_SCOPED = re.compile(
    r"^\s*(include_directories|link_directories|link_libraries|add_definitions|"
    r"add_compile_definitions|add_compile_options|add_link_options|FetchContent_\w+|"
    r"ExternalProject_\w+|file\s*\(\s*(GLOB|GLOB_RECURSE|DOWNLOAD))\b",
    re.IGNORECASE,
)


def check_text(path, text):
    """The faults of one file, each as (line number, sentence)."""
    faults = []
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    else:
        faults.append((len(lines), "the file does not end with a line break"))
    is_code = CODE.search(path) is not None
    if is_code and len(lines) > MAX_LINES and path not in LONG_FILES:
        faults.append((MAX_LINES + 1, f"the file has {len(lines)} lines, more than {MAX_LINES}"))
    for number, line in enumerate(lines, 1):
        bad = next((c for c in line if not (c == "\t" or 32 <= ord(c) < 127)), None)
        if bad is not None:
            faults.append((number, f"the character U+{ord(bad):04X} is not printable ASCII"))
        if line != line.rstrip():
            faults.append((number, "the line ends with a space"))
        if is_code and "\t" in line:
            faults.append((number, "the line holds a tab"))
        if is_code and path != "tools/check_style.py" and path != "tools/check_style_test.py":
            if TODO.search(line) and not TODO_WITH_CONDITION.search(line):
                faults.append((number, "a to-do names its condition: 'TODO(when ...): what'"))
            if MACHINE_PATH.search(line):
                faults.append((number, "the line names a path of one machine"))
        if CMAKE.search(path) and DIRECTORY_SCOPED.search(line):
            faults.append((number, "no directory-scoped command, no globbing and no fetching"))
    if path.endswith(".h") and not path.endswith("-inl.h"):
        if not lines or not lines[0].startswith("// "):
            faults.append((1, "a header opens with a paragraph: what it is, why it exists"))
        if "#pragma once" not in lines:
            faults.append((1, "a header has '#pragma once'"))
    return faults


def list_tracked(root):
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True
    ).stdout.decode()
    return [name for name in names.split("\0") if name and os.path.isfile(os.path.join(root, name))]


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..")
    count = 0
    for path in list_tracked(root):
        if path.startswith(SKIPPED) or not TEXT.search(path):
            continue
        with open(os.path.join(root, path), "rb") as file:
            content = file.read()
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            print(f"{path}: byte {error.start} is not UTF-8", file=sys.stderr)
            count += 1
            continue
        for number, sentence in check_text(path, text):
            print(f"{path}:{number}: {sentence}", file=sys.stderr)
            count += 1
    for path in LONG_FILES:
        if not os.path.isfile(os.path.join(root, path)):
            print(f"{path}: is allowed to be long but does not exist", file=sys.stderr)
            count += 1
    if count:
        sys.exit(f"check_style: {count} faults")
    print("check_style: no faults")


if __name__ == "__main__":
    main()
