"""Tests of check_style.py: each rule with a text that it lets pass and one that it stops."""

import unittest

from check_style import MAX_LINES, check_text

HEADER = "// What this is.\n#pragma once\n"


def sentences(path, text):
    return " ".join(sentence for _, sentence in check_text(path, text))


class CheckText(unittest.TestCase):
    def test_clean_files_have_no_faults(self):
        self.assertEqual(check_text("src/base/a.h", HEADER), [])
        self.assertEqual(check_text("src/base/a.cpp", "int x;\n"), [])
        self.assertEqual(check_text("docs/a.md", "# Text\n"), [])

    def test_length_counts_lines_of_code_only(self):
        self.assertEqual(check_text("src/base/a.cpp", "\n" * MAX_LINES), [])
        self.assertIn("1001 lines", sentences("src/base/a.cpp", "\n" * (MAX_LINES + 1)))
        self.assertEqual(check_text("docs/a.md", "\n" * (MAX_LINES + 1)), [])
        self.assertEqual(check_text("src/tensor/packed_grids.cpp", "\n" * (MAX_LINES + 1)), [])

    def test_characters_are_printable_ascii(self):
        self.assertIn("U+2192", sentences("docs/a.md", "a \u2192 b\n"))
        self.assertIn("U+0007", sentences("src/a.cpp", "\x07\n"))
        self.assertIn("U+000D", sentences("src/a.cpp", "int x;\r\n"))

    def test_to_do_names_its_condition(self):
        self.assertEqual(check_text("src/a.cpp", "// TODO(when CUDA lands): reuse this.\n"), [])
        self.assertIn("condition", sentences("src/a.cpp", "// TODO: later\n"))
        self.assertIn("condition", sentences("src/a.cpp", "// FIXME\n"))

    def test_path_of_a_machine_is_a_fault(self):
        for root in ("home", "root", "tmp", "work"):
            self.assertIn("path of one machine", sentences("tools/a.sh", f"cd /{root}/someone\n"))
            self.assertIn("path of one machine", sentences("src/a.cpp", f'f("/{root}/x");\n'))
        self.assertEqual(check_text("src/a.cpp", "// state/work/io and build/tmp/x\n"), [])

    def test_layout_of_lines(self):
        self.assertIn("ends with a space", sentences("a.md", "x \n"))
        self.assertIn("tab", sentences("a.sh", "\techo\n"))
        self.assertIn("line break", sentences("a.sh", "echo"))

    def test_header_opens_with_its_purpose(self):
        self.assertIn("opens with a paragraph", sentences("src/a.h", "#pragma once\n"))
        self.assertIn("pragma once", sentences("src/a.h", "// What.\n"))

    def test_cmake_sets_nothing_for_a_directory(self):
        self.assertIn("directory-scoped", sentences("src/CMakeLists.txt", "include_directories(x)\n"))
        self.assertIn("globbing", sentences("src/CMakeLists.txt", "file(GLOB x *.cpp)\n"))
        self.assertEqual(check_text("src/CMakeLists.txt", "target_link_libraries(a b)\n"), [])


if __name__ == "__main__":
    unittest.main()
