"""Tests of check_layers.py: each rule with a case that it lets pass and one that it stops."""

import os
import tempfile
import unittest

import check_layers
from check_layers import check_include, check_public_include, check_table


class CheckInclude(unittest.TestCase):
    def test_folder_may_include_itself_and_what_its_row_names(self):
        self.assertIsNone(check_include("ops/matmul.cpp", '"', "ops/matmul.h"))
        self.assertIsNone(check_include("ops/matmul.cpp", '"', "base/error.h"))
        self.assertIsNone(check_include("ops/matmul.cpp", '"', "rlx/dtype.h"))

    def test_arrow_against_the_table_is_a_fault(self):
        self.assertIn("tensor may not include ops", check_include("tensor/a.h", '"', "ops/b.h"))
        self.assertIn("may not include tensor", check_include("memory/place.cpp", '"', "tensor/dtype.h"))
        self.assertIn("may not include", check_include("runtime/session.h", '"', "passes/fold.h"))
        self.assertIn("may not include", check_include("compiler/emit.cpp", '"', "backends/cpu/kernel.h"))

    def test_rows_are_not_inherited(self):
        layers = {"a": ([], ""), "b": (["a"], ""), "c": (["b"], "")}
        self.assertIsNone(check_include("c/x.h", '"', "b/y.h", layers, {}))
        self.assertIn("may not include a", check_include("c/x.h", '"', "a/y.h", layers, {}))

    def test_longest_row_decides(self):
        self.assertIsNone(check_include("backends/cpu/kernels/a.cpp", '"', "backends/cpu/kernel.h"))
        self.assertIsNone(check_include("backends/cpu/compile.cpp", '"', "backends/cpu/kernel.h"))
        self.assertIsNone(check_include("backends/cpu/compile.cpp", '"', "backends/cpu/kernels/kernels.h"))
        self.assertIn(
            "may not include backends/cpu",
            check_include("backends/cpu/kernels/a.cpp", '"', "backends/cpu/compile.h"),
        )

    def test_row_allows_what_is_below_it(self):
        self.assertIsNone(check_include("runtime/session.cpp", '"', "program/weight_store.h"))
        self.assertIsNone(check_include("models/model_file.h", '"', "program/weight_store.h"))
        self.assertIsNotNone(check_include("models/model_file.h", '"', "program/program.h"))

    def test_folder_whose_name_starts_like_another_is_not_that_folder(self):
        self.assertIn("layer table", check_include("base/a.cpp", '"', "basement/b.h"))

    def test_siblings_among_backends_and_formats_do_not_meet(self):
        self.assertIsNotNone(check_include("backends/cpu/a.cpp", '"', "backends/reference/b.h"))
        self.assertIsNotNone(check_include("frontends/gguf/a.cpp", '"', "frontends/safetensors/b.h"))
        self.assertIsNotNone(check_include("backends/cpu/a.cpp", '"', "frontends/gguf/b.h"))

    def test_test_may_look_anywhere(self):
        self.assertIsNone(check_include("passes/fold_test.cpp", '"', "backends/reference/run.h"))
        self.assertIsNone(check_include("passes/fold_test.cpp", "<", "gtest/gtest.h"))
        self.assertIsNone(check_include("passes/fold_test_graphs.h", "<", "gtest/gtest.h"))

    def test_only_tests_see_what_tests_share(self):
        self.assertIsNone(check_include("passes/fold_test.cpp", '"', "passes/pass_testing.h"))
        self.assertIsNone(check_include("passes/pass_testing.h", "<", "gtest/gtest.h"))
        self.assertIn("tests alone", check_include("passes/fold.cpp", '"', "passes/pass_testing.h"))

    def test_include_that_is_no_path_from_src_is_a_fault(self):
        self.assertIsNotNone(check_include("base/a.cpp", '"', "error.h"))
        self.assertIsNotNone(check_include("base/a.cpp", '"', "../tensor/dtype.h"))

    def test_file_in_a_folder_without_a_row_is_a_fault(self):
        self.assertIn("no folder", check_include("misc/a.cpp", '"', "base/error.h"))

    def test_vendor_header_stays_in_its_folder(self):
        self.assertIsNone(check_include("backends/cpu/kernels/a.cpp", '"', "hwy/foreach_target.h"))
        self.assertIsNone(check_include("text/regex.cpp", "<", "pcre2.h"))
        self.assertIn("belongs to", check_include("runtime/a.cpp", "<", "cuda.h"))
        self.assertIn("belongs to", check_include("ir/a.cpp", "<", "nlohmann/json.hpp"))
        self.assertIn("belongs to", check_include("base/a.cpp", "<", "gtest/gtest.h"))


class CheckPublicInclude(unittest.TestCase):
    def test_installed_header_sees_the_standard_library_and_itself(self):
        self.assertIsNone(check_public_include("<", "string_view"))
        self.assertIsNone(check_public_include("<", "stdint.h"))
        self.assertIsNone(check_public_include('"', "rlx/error.h"))

    def test_installed_header_sees_nothing_else(self):
        self.assertIsNotNone(check_public_include("<", "fmt/format.h"))
        self.assertIsNotNone(check_public_include("<", "pcre2.h"))
        self.assertIsNotNone(check_public_include('"', "base/error.h"))


class CheckTable(unittest.TestCase):
    def test_own_table_is_sound(self):
        self.assertEqual(check_table(check_layers.LAYERS), [])

    def test_circle_is_a_fault(self):
        faults = check_table({"a": (["b"], ""), "b": (["c"], ""), "c": (["a"], "")})
        self.assertEqual(len(faults), 3)

    def test_unknown_row_is_a_fault(self):
        self.assertIn("has no row", check_table({"a": (["z"], "")})[0])


class CheckTree(unittest.TestCase):
    def test_fault_names_file_and_line(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "src", "base"))
            with open(os.path.join(root, "src", "base", "a.cpp"), "w", encoding="ascii") as file:
                file.write('#include "base/a.h"\n#  include "ir/graph.h"\n// #include "ops/b.h"\n')
            faults = check_layers.check_tree(root)
        self.assertEqual(len(faults), 1)
        self.assertTrue(faults[0].startswith("src/base/a.cpp:2: base may not include ir"), faults[0])


if __name__ == "__main__":
    unittest.main()
