#!/usr/bin/env python3
"""Tests of the rlx command, run as a user would run it.

usage: tests/cli/cli_test.py RLX [unittest arguments], from the root of the source tree
"""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from files import read_npy, write_npy, write_sparse_gguf

RLX = ""
MODEL = "models/demo/demo-Q8_0.gguf"
FOLDER = "tests/data/small/llama"
COMMANDS = ("run", "chat", "perplexity", "inspect", "plan", "tokenize", "bench", "embed")
BOS = 2046
VOCAB = 2048
CONTEXT = 1024
TIMEOUT = 120


class RlxTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="rlx_cli_test_")
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def call(self, *arguments, stdin=b"", **options):
        return subprocess.run([RLX, *arguments], input=stdin, capture_output=True, timeout=TIMEOUT,
                              **options)

    def ok(self, *arguments, **options):
        """Runs a command that succeeds; its stdout and stderr as text."""
        result = self.call(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr.decode(errors="replace"))
        return result.stdout.decode(), result.stderr.decode()

    def fails(self, code, *arguments, **options):
        """Runs a command that fails with one line, and nothing on stdout; returns the line."""
        result = self.call(*arguments, **options)
        error = result.stderr.decode(errors="replace")
        self.assertEqual(result.returncode, code, error)
        self.assertEqual(result.stdout, b"")
        self.assertTrue(error.startswith("rlx: error: "), error)
        self.assertTrue(error.endswith("\n"), error)
        self.assertEqual(error.count("\n"), 1, error)
        return error

    def generate(self, *arguments, **options):
        return self.ok("run", MODEL, *arguments, **options)


class Usage(RlxTest):
    def test_help_of_every_command_has_examples(self):
        for arguments in (["--help"], ["help"], *([command, "--help"] for command in COMMANDS),
                          *(["help", command] for command in COMMANDS)):
            with self.subTest(arguments):
                out, err = self.ok(*arguments)
                self.assertIn("Examples:\n  ", out)
                command = next((word for word in arguments if word in COMMANDS), "run")
                self.assertIn(f"  rlx {command} ", out[out.index("Examples:"):])
                self.assertEqual(err, "")

    def test_help_names_every_command(self):
        out, _ = self.ok("--help")
        for command in COMMANDS:
            self.assertRegex(out, rf"(?m)^  {command} ")

    def test_version_is_one_line(self):
        out, _ = self.ok("--version")
        self.assertRegex(out, r"\Arlx \d+\.\d+\.\d+\n\Z")

    def test_no_arguments_show_the_help_on_stderr(self):
        result = self.call()
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stdout, b"")
        self.assertIn(b"Examples:", result.stderr)

    def test_wrong_usage_is_explained_in_one_line(self):
        for arguments, message in (
                (["frob"], "'frob'.*commands are: run, chat, perplexity, inspect, plan, tokenize"),
                (["inspct", MODEL], "'inspct'.*Did you mean 'inspect'"),
                (["--frob"], "'--frob'"),
                (["help", "frob"], "'frob'"),
                (["run"], "MODEL is required"),
                (["run", MODEL], "-p TEXT.*--input NAME=FILE.npy"),
                (["run", MODEL, "-p"], "--prompt"),
                (["run", MODEL, "-p", "x", "--tmep", "0"], "'--tmep'.*Did you mean '--temp'.*--top-k"),
                (["run", MODEL, "-p", "x", "--frob=1"], "no option '--frob'.*--top-k"),
                (["run", MODEL, "-p", "In", "the", "beginning"], "'the'.*quotes"),
                (["run", MODEL, "-p", "x", "-n", "many"], "many"),
                (["run", MODEL, "-p", "x", "-n", "-2"], "-2"),
                (["run", MODEL, "-p", "x", "-t", "0"], "--threads"),
                (["run", MODEL, "-p", "x", "-t", "99999999999999999999"], "--threads"),
                (["run", MODEL, "-p", "x", "-c", "-1"], "--context"),
                (["run", MODEL, "-p", "x", "-b", "0"], "--batch"),
                (["run", MODEL, "-p", "x", "--temp", "-1"], "--temp"),
                (["run", MODEL, "-p", "x", "--temp", "warm"], "--temp"),
                (["run", MODEL, "-p", "x", "--top-k", "-1"], "--top-k"),
                (["run", MODEL, "-p", "x", "--top-p", "1.5"], "--top-p"),
                (["run", MODEL, "-p", "x", "--min-p", "-0.5"], "--min-p"),
                (["run", MODEL, "-p", "x", "--repeat-penalty", "0"], "--repeat-penalty"),
                (["run", MODEL, "-p", "x", "--seed", "-1"], "--seed"),
                (["run", MODEL, "-p", "x", "--typical", "2"], "--typical"),
                (["run", MODEL, "-p", "x", "--logit-bias", "5"], "ID=VALUE"),
                (["run", MODEL, "-p", "x", "--logit-bias", "5=inf"], "ID=VALUE"),
                (["run", MODEL, "-p", "x", "--max-time", "0"], "--max-time"),
                (["run", MODEL, "-p", "x", "--cache-type", "q8"], "--cache-type"),
                (["run", MODEL, "-p", "x", "--input", "a=b.npy"], "excludes"),
                (["run", MODEL, "--input", "a=b.npy", "-n", "3"], "excludes"),
                (["run", MODEL, "--input", "input_ids"], "NAME=FILE.npy"),
                (["run", MODEL, "--input", "=b.npy"], "NAME=FILE.npy"),
                (["run", MODEL, "-p", "x", "--output", "logits=b.npy"], "--input"),
                (["inspect", MODEL, "--graph=best"], "--graph"),
                (["inspect", MODEL, "--graph", "--json"], "excludes"),
                (["plan"], "MODEL is required"),
                (["chat", MODEL, "-p", "x"], "no option '-p'.*--system"),
                (["perplexity", MODEL], "--file is required"),
                (["tokenize", MODEL], "TEXT is required")):
            with self.subTest(arguments):
                self.assertRegex(self.fails(2, *arguments), message)

    def test_a_word_may_be_the_name_of_a_command(self):
        self.assertEqual(self.ok("tokenize", MODEL, "run")[0], "2046 465 77\n")


class Text(RlxTest):
    def test_text_goes_to_stdout_and_statistics_to_stderr(self):
        out, err = self.generate("-p", "In the beginning", "-n", "12", "--temp", "0", "-t", "2")
        self.assertEqual(out, " of the reign of Jehoiakim the son of J\n")
        self.assertRegex(err, r"load +[\d.]+ ms\n")
        self.assertRegex(err, r"prompt +5 tokens, [\d.]+ tokens/s\n")
        self.assertRegex(err, r"generated +12 tokens, [\d.]+ tokens/s, stopped by: token limit\n")
        self.assertRegex(err, r"threads +2\n")
        self.assertRegex(err, r"seed +\d+\n")
        self.assertRegex(err, r"memory +weights [\d,]+ B, state [\d,]+ B, io [\d,]+ B, "
                              r"work [\d,]+ B, arena [\d,]+ B\n")
        self.assertNotIn("Jehoiakim", err)

    def test_temperature_zero_repeats_itself_whatever_the_seed_threads_and_batch(self):
        arguments = ["-p", "And it came to pass,", "-n", "16", "--temp", "0"]
        first, _ = self.generate(*arguments)
        for more in ([], ["--seed", "5"], ["-t", "1"], ["-t", "3"], ["-b", "2"]):
            with self.subTest(more):
                self.assertEqual(self.generate(*arguments, *more)[0], first)

    def test_the_printed_seed_replays(self):
        arguments = ["-p", "The king", "-n", "24", "--temp", "1.5", "--top-k", "0", "--top-p", "1"]
        first, err = self.generate(*arguments)
        seed = re.search(r"seed +(\d+)", err).group(1)
        again, err = self.generate(*arguments, "--seed", seed)
        self.assertEqual(again, first)
        self.assertEqual(re.search(r"seed +(\d+)", err).group(1), seed)
        other, _ = self.generate(*arguments, "--seed", str(int(seed) ^ 1))
        self.assertNotEqual(other, first)

    def test_the_largest_seed_is_taken(self):
        _, err = self.generate("-p", "x", "-n", "1", "--seed", str(2**64 - 1))
        self.assertIn(str(2**64 - 1), err)

    def test_one_candidate_is_greedy(self):
        greedy, _ = self.generate("-p", "The king", "-n", "8", "--temp", "0")
        for option in (["--top-k", "1"], ["--top-p", "0"], ["--min-p", "1"]):
            with self.subTest(option):
                self.assertEqual(self.generate("-p", "The king", "-n", "8", *option)[0], greedy)

    def test_a_repeat_penalty_changes_the_text(self):
        arguments = ["-p", "holy holy holy holy", "-n", "16", "--temp", "0"]
        plain, _ = self.generate(*arguments)
        self.assertNotEqual(self.generate(*arguments, "--repeat-penalty", "1.8")[0], plain)

    def test_the_other_penalties_change_the_text_too(self):
        arguments = ["-p", "holy holy holy holy", "-n", "16", "--temp", "0"]
        plain, _ = self.generate(*arguments)
        for option in ("--presence-penalty", "--frequency-penalty"):
            self.assertNotEqual(self.generate(*arguments, option, "4")[0], plain)
            self.assertEqual(
                self.generate(*arguments, option, "4", "--repeat-last-n", "0")[0], plain)

    def test_a_bias_excludes_or_forces_a_token(self):
        arguments = ["-p", "In the beginning", "-n", "4", "--temp", "0"]
        token = self.ok("tokenize", MODEL, "--no-special", " of")[0].strip()
        out, _ = self.generate(*arguments, "--logit-bias", f"{token}=-inf")
        self.assertFalse(out.startswith(" of"), out)
        out, _ = self.generate(*arguments, "--logit-bias", f"{token}=100")
        self.assertEqual(out, " of of of of\n")
        self.assertIn("token 5000", self.fails(1, "run", MODEL, *arguments, "--logit-bias", "5000=1"))

    def test_a_stop_string_ends_the_text_and_is_not_printed(self):
        out, err = self.generate("-p", "In the beginning", "-n", "12", "--temp", "0",
                                 "--stop", "never", "--stop", "Jehoiakim the")
        self.assertEqual(out, " of the reign of \n")
        self.assertIn("stopped by: stop string", err)

    def test_the_time_limit_ends_the_text(self):
        _, err = self.generate("-p", "In the beginning", "-n", "-1", "--max-time", "0.000001")
        self.assertIn("stopped by: time limit", err)

    def test_echo_puts_the_prompt_before_the_text(self):
        arguments = ["-p", "In the beginning", "-n", "6", "--temp", "0"]
        plain, _ = self.generate(*arguments)
        self.assertEqual(self.generate(*arguments, "--echo")[0], "In the beginning" + plain)

    def test_a_dash_reads_the_prompt_from_stdin(self):
        arguments = ["-n", "6", "--temp", "0"]
        plain, _ = self.generate("-p", "KING RICHARD:\n", *arguments)
        self.assertEqual(self.generate("-p", "-", *arguments, stdin=b"KING RICHARD:\n")[0], plain)

    def test_an_empty_prompt_starts_from_the_beginning_token(self):
        out, err = self.generate("-p", "", "-n", "3", "--temp", "0")
        self.assertGreater(len(out), 1)
        self.assertRegex(err, r"prompt +1 tokens")

    def test_bytes_that_are_no_text_are_taken(self):
        out, _ = self.generate("-p", "-", "-n", "2", "--temp", "0", stdin=b"\xff\xfe\x00\x80")
        self.assertTrue(out.endswith("\n"))

    def test_no_tokens_are_no_text(self):
        out, err = self.generate("-p", "In the beginning", "-n", "0")
        self.assertEqual(out, "\n")
        self.assertRegex(err, r"generated +0 tokens, stopped by: token limit\n")

    def test_without_a_limit_the_text_ends_with_the_context(self):
        out, err = self.generate("-p", "In the beginning", "-n", "-1", "-c", "16", "--temp", "0")
        self.assertRegex(err, r"stopped by: context full\n")
        # 5 tokens of the prompt leave 11 rows, and the last token needs none.
        self.assertRegex(err, r"generated +12 tokens")
        self.assertEqual(out, " of the reign of Jehoiakim the son of J\n")

    def test_a_rolling_context_goes_on_when_it_is_full(self):
        out, err = self.generate("-p", "In the beginning", "-c", "16", "-n", "40", "--temp", "0",
                                 "--rolling", "4")
        self.assertRegex(err, r"generated +40 tokens, .*stopped by: token limit")
        error = self.fails(1, "run", MODEL, "-p", "In", "-c", "16", "--rolling", "15")
        self.assertIn("at most 14 can stay", error)

    def test_many_prompts_give_what_each_gives_alone(self):
        prompts = ["In the beginning", "And it came to pass", "O", "The LORD said unto Moses"]
        with open(self.path("prompts.txt"), "w") as file:
            file.write("\n".join(prompts) + "\n\n")
        options = ["-n", "12", "--seed", "3", "-c", "64"]
        out, err = self.ok("run", MODEL, "--prompts", self.path("prompts.txt"), "--parallel", "3",
                           *options)
        results = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([result["prompt"] for result in results], prompts)
        self.assertIn("4 prompts, 3 at once", err)
        for result in results:
            text, _ = self.generate("-p", result["prompt"], *options)
            self.assertEqual(result["text"] + "\n", text)

    def test_a_cache_of_every_type_writes_text(self):
        for kind in ("f32", "f16", "bf16", "q8_0"):
            out, _ = self.generate("-p", "In the beginning", "-n", "4", "--temp", "0",
                                   "--cache-type", kind)
            self.assertTrue(out.startswith(" of the"), out)
            plan, _ = self.ok("plan", MODEL, "--cache-type", kind, "--parallel", "2")
            self.assertIn(f"key/value cache, {kind}, 2 texts, 6 layers x 1,024 rows", plan)

    def test_embedding_needs_an_encoder_and_a_text(self):
        self.assertIn("is not an encoder", self.fails(1, "embed", FOLDER, "a text"))
        self.assertIn("no text to embed", self.fails(1, "embed", FOLDER))

    def test_both_formats_write_text(self):
        out, _ = self.ok("run", "models/demo/demo-Q4_0.gguf", "-p", "In the", "-n", "4", "--temp", "0")
        self.assertGreater(len(out), 2)

    def test_other_ways_of_computing_are_chosen_by_option(self):
        for option in (["--activations", "float"], ["--cache-type", "f32"], ["--cache-type", "bf16"],
                       ["--device", "cpu"], ["--poison", "-c", "32", "-b", "4"]):
            with self.subTest(option):
                out, _ = self.generate("-p", "In the beginning", "-n", "4", "--temp", "0", *option)
                self.assertEqual(out, " of the reign of\n")


class Stopping(RlxTest):
    def start(self, *arguments, **options):
        process = subprocess.Popen([RLX, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   **options)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def finish(self, process):
        """The exit code and the rest of what was written."""
        out = process.stdout.read()
        err = process.stderr.read().decode()
        return process.wait(TIMEOUT), out, err

    def test_ctrl_c_while_writing_keeps_the_text_so_far(self):
        whole, _ = self.generate("-p", "In the beginning", "-n", "-1", "--temp", "0", "-c", "60")
        process = self.start("run", MODEL, "-p", "In the beginning", "-n", "-1", "--temp", "0")
        head = process.stdout.read(12)
        process.send_signal(signal.SIGINT)
        code, rest, err = self.finish(process)
        self.assertEqual(code, 130, err)
        self.assertIn("stopped by: cancelled", err)
        text = (head + rest).decode()
        self.assertTrue(text.endswith("\n"))
        # Both texts are the greedy one, so the shorter is the beginning of the longer.
        length = min(len(text), len(whole)) - 1
        self.assertEqual(text[:length], whole[:length])
        tokens = int(re.search(r"generated +(\d+) tokens", err).group(1))
        self.assertGreater(tokens, 0)

    def test_ctrl_c_stops_a_long_prompt(self):
        prompt = "in the beginning " * 160
        # One token at a time, so that the prompt takes long.
        process = self.start("run", MODEL, "-p", prompt, "-n", "1", "-b", "1", "--echo")
        head = process.stdout.read(10)  # the echo: the prompt begins
        process.send_signal(signal.SIGINT)
        code, rest, err = self.finish(process)
        self.assertEqual(code, 130, err)
        self.assertEqual((head + rest).decode(), prompt + "\n")
        self.assertRegex(err, r"generated +0 tokens, stopped by: cancelled")

    def test_ctrl_c_stops_the_wait_for_a_prompt(self):
        process = self.start("run", MODEL, "-p", "-", stdin=subprocess.PIPE)
        self.addCleanup(process.stdin.close)
        # The handler is there when the model is: stdin is read after that, which /proc shows.
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline and not self.is_handled(process.pid, signal.SIGINT):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        code, out, err = self.finish(process)
        self.assertEqual((code, out, err), (130, b"", ""))

    def is_handled(self, pid, number):
        with open(f"/proc/{pid}/status") as file:
            mask = int(re.search(r"SigCgt:\s*([0-9a-f]+)", file.read()).group(1), 16)
        return mask >> (number - 1) & 1 == 1

    def test_a_long_prompt_shows_its_progress_on_a_terminal_only(self):
        arguments = ["run", MODEL, "-p", "in the beginning " * 20, "-n", "2", "-b", "16"]
        self.assertNotIn("%", self.ok(*arguments)[1])
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        process = subprocess.Popen([RLX, *arguments], stdout=subprocess.PIPE, stderr=end)
        os.close(end)
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 0)
        self.assertNotIn(b"%", out)
        shown = b""
        while True:
            try:
                data = os.read(terminal, 4096)
            except OSError:  # what a terminal says when nobody holds its other end
                break
            shown += data
        percents = [int(number) for number in re.findall(rb"prompt +(\d+) %", shown)]
        self.assertGreater(len(percents), 3)
        self.assertEqual(percents, sorted(percents))
        self.assertLess(percents[-1], 100)
        self.assertLess(shown.rindex(b"%"), shown.index(b"load"))

    def test_a_reader_that_goes_away_ends_the_run(self):
        process = self.start("run", MODEL, "-p", "In the beginning", "-n", "-1")
        process.stdout.read(5)
        process.stdout.close()
        self.assertEqual(process.wait(TIMEOUT), -signal.SIGPIPE)
        self.assertEqual(process.stderr.read(), b"")

    def test_a_reader_that_goes_away_is_an_error_where_the_signal_is_ignored(self):
        process = self.start("run", MODEL, "-p", "In the beginning", "-n", "-1",
                             restore_signals=False)
        process.stdout.read(5)
        process.stdout.close()
        self.assertEqual(process.wait(TIMEOUT), 1)
        self.assertEqual(process.stderr.read(),
                         b"rlx: error: Cannot write to stdout: Broken pipe.\n")

    def test_a_full_disk_is_an_error(self):
        for arguments in (["run", MODEL, "-p", "x", "-n", "2"], ["plan", MODEL], ["inspect", MODEL],
                          ["tokenize", MODEL, "x"], ["--version"], ["--help"]):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                result = subprocess.run([RLX, *arguments], stdout=full, stderr=subprocess.PIPE,
                                        stdin=subprocess.DEVNULL, timeout=TIMEOUT)
                self.assertEqual(result.returncode, 1)
                self.assertRegex(result.stderr.decode(), r"\Arlx: error: .*No space left on device.*\n\Z")


class Failures(RlxTest):
    def broken_files(self):
        """Paths of models that cannot be opened, each with the words that its error must hold."""
        with open(MODEL, "rb") as file:
            model = file.read()

        def write(name, data):
            with open(self.path(name), "wb") as file:
                file.write(data)
            return self.path(name)

        os.mkdir(self.path("empty_folder"))
        os.mkdir(self.path("folder.gguf"))
        os.mkdir(self.path("broken_config"))
        write("broken_config/config.json", b"{\"model_type\": ")
        tensors = model.index(b"blk.0.attn_norm.weight")
        return (
            (self.path("missing.gguf"), "No such file"),
            (self.path("empty_folder"), "config.json"),
            (self.path("folder.gguf"), "config.json"),
            (self.path("broken_config"), "config.json"),
            (write("empty.gguf", b""), "empty.gguf"),
            (write("noise.gguf", b"This is no model at all." * 10), "not a GGUF file"),
            (write("magic.gguf", model[:4]), "magic.gguf"),
            (write("header.gguf", model[:20]), "header.gguf"),
            (write("metadata.gguf", model[:9000]), "metadata.gguf"),
            (write("tensors.gguf", model[:tensors + 30]), "tensors.gguf"),
            (write("data.gguf", model[:-1000]), "blk.5"),
            (write("text.txt", b"hello"), "text.txt"),
        )

    def test_a_broken_model_is_named(self):
        for path, message in self.broken_files():
            for command in (["run", path, "-p", "x"], ["inspect", path], ["plan", path],
                            ["tokenize", path, "x"]):
                with self.subTest(command):
                    error = self.fails(1, *command)
                    self.assertIn(path, error)
                    self.assertIn(message, error)

    def test_an_unknown_architecture_lists_the_known_ones(self):
        path = self.path("unknown.gguf")
        with open(MODEL, "rb") as file:
            model = file.read()
        place = model.index(b"llama", model.index(b"general.architecture"))
        with open(path, "wb") as file:
            file.write(model[:place] + b"lmaao" + model[place + 5:])
        for command in (["run", path, "-p", "x"], ["plan", path], ["inspect", path, "--graph"]):
            with self.subTest(command):
                error = self.fails(1, *command)
                self.assertRegex(error, r"'lmaao'.*llama.*qwen3")
                self.assertEqual(error.count(path), 1, error)

    def test_a_name_in_a_file_cannot_break_the_line(self):
        path = self.path("two\nlines.gguf")
        error = self.fails(1, "inspect", path)
        self.assertIn("lines.gguf", error)

    def test_a_context_beyond_the_models_is_named(self):
        for command in (["run", MODEL, "-p", "x"], ["plan", MODEL]):
            error = self.fails(1, *command, "-c", str(CONTEXT + 1))
            self.assertIn(MODEL, error)
            self.assertRegex(error, r"1025.*1024")

    def test_a_prompt_beyond_the_context_is_named(self):
        error = self.fails(1, "run", MODEL, "-p", "in the beginning " * 10, "-c", "12")
        self.assertIn(MODEL, error)
        self.assertRegex(error, r"\d+ tokens.*12 tokens")

    def test_an_unknown_device_is_named(self):
        self.assertRegex(self.fails(1, "run", MODEL, "-p", "x", "--device", "tpu"), "'tpu'.*cpu")

    def test_a_folder_without_a_tokenizer_still_runs_tensors_and_says_what_text_needs(self):
        self.assertIn("tokenizer.json", self.fails(1, "run", FOLDER, "-p", "x"))
        self.assertIn("tokenizer.json", self.fails(1, "tokenize", FOLDER, "x"))


class Tensors(RlxTest):
    def setUp(self):
        super().setUp()
        self.ids = self.path("ids.npy")
        write_npy(self.ids, "<i8", (1, 5), (BOS, 1276, 258, 1932, 1299))
        self.logits = self.path("logits.npy")

    def run_tensors(self, *more, ids=None, model=MODEL):
        return ["run", model, "--input", f"input_ids={ids or self.ids}", *more]

    def test_logits_have_a_row_for_every_token(self):
        _, err = self.ok(*self.run_tensors("--output", f"logits={self.logits}"))
        self.assertIn("run", err)
        dtype, shape, values = read_npy(self.logits)
        self.assertEqual((dtype, shape), ("<f4", (1, 5, VOCAB)))
        self.assertEqual(len(values), 5 * VOCAB)
        # The likeliest token after the last is the one that greedy text begins with.
        last = values[-VOCAB:]
        out, _ = self.ok("tokenize", MODEL, "--decode", str(last.index(max(last))))
        text, _ = self.generate("-p", "In the beginning", "-n", "1", "--temp", "0")
        self.assertEqual(out, text)

    def test_narrow_integers_are_taken(self):
        self.ok(*self.run_tensors("--output", f"logits={self.logits}"))
        for dtype in ("<i4", "<i2"):
            with self.subTest(dtype):
                ids, logits = self.path("narrow.npy"), self.path("narrow_logits.npy")
                write_npy(ids, dtype, (1, 5), (BOS, 1276, 258, 1932, 1299))
                self.ok(*self.run_tensors("--output", f"logits={logits}", ids=ids))
                self.assertEqual(read_npy(logits), read_npy(self.logits))

    def test_an_output_may_be_written_twice_or_not_at_all(self):
        other = self.path("other.npy")
        self.ok(*self.run_tensors("--output", f"logits={self.logits}", "--output", f"logits={other}"))
        self.assertEqual(read_npy(self.logits), read_npy(other))
        self.ok(*self.run_tensors())

    def test_a_folder_runs_too(self):
        write_npy(self.ids, "<i8", (1, 2), (1, 2))
        self.ok(*self.run_tensors("--output", f"logits={self.logits}", model=FOLDER))
        _, shape, _ = read_npy(self.logits)
        self.assertEqual(shape[:2], (1, 2))

    def test_bad_tensors_are_named_and_leave_nothing_behind(self):
        def write(name, *array):
            write_npy(self.path(name), *array)
            return self.path(name)

        text = self.path("text.npy")
        with open(text, "w") as file:
            file.write("no array")
        short = self.path("short.npy")
        with open(self.ids, "rb") as whole, open(short, "wb") as file:
            file.write(whole.read()[:-1])
        out = ["--output", f"logits={self.logits}"]
        before = set(os.listdir(self.dir)) | {"rank.npy", "batch.npy", "float.npy", "none.npy",
                                              "large.npy", "negative.npy", "long.npy"}
        for arguments, message in (
                (self.run_tensors(*out, ids=self.path("no.npy")), r"no\.npy"),
                (self.run_tensors(*out, ids=text), r"text\.npy"),
                (self.run_tensors(*out, ids=short), r"short\.npy"),
                (self.run_tensors(*out, ids=write("rank.npy", "<i8", (5,), (1,) * 5)),
                 r"input_ids.*i64\[5\].*i64\[1, tokens\]"),
                (self.run_tensors(*out, ids=write("batch.npy", "<i8", (2, 2), (1,) * 4)),
                 r"input_ids.*i64\[2, 2\].*i64\[1, tokens\]"),
                (self.run_tensors(*out, ids=write("none.npy", "<i8", (1, 0), ())),
                 r"input_ids.*i64\[1, 0\].*i64\[1, tokens\]"),
                (self.run_tensors(*out, ids=write("float.npy", "<f4", (1, 2), (1, 2))),
                 r"input_ids.*f32\[1, 2\].*i64\[1, tokens\]"),
                (self.run_tensors(*out, ids=write("large.npy", "<i8", (1, 2), (1, VOCAB))),
                 r"2048 at position 1.*2048"),
                (self.run_tensors(*out, ids=write("negative.npy", "<i8", (1, 2), (-1, 0))),
                 r"-1 at position 0"),
                (self.run_tensors(*out, ids=write("long.npy", "<i8", (1, 1025), (1,) * 1025)),
                 r"1025.*1024"),
                (self.run_tensors(*out, "-c", "4"), r"5.*4"),
                (self.run_tensors("--output", f"logit={self.logits}"), r"'logit'.*logits"),
                (["run", MODEL, "--input", f"tokens={self.ids}", *out], r"'tokens'.*input_ids"),
                (self.run_tensors("--input", f"input_ids={self.ids}", *out), r"input_ids")):
            with self.subTest(arguments):
                self.assertRegex(self.fails(1, *arguments), message)
        self.assertEqual(set(os.listdir(self.dir)), before)

    def test_an_output_that_cannot_be_written_is_named_and_leaves_nothing_behind(self):
        for name, message in (("no_folder/logits.npy", "No such file"), (".", "directory")):
            with self.subTest(name):
                path = self.path(name)
                error = self.fails(1, *self.run_tensors("--output", f"logits={path}"))
                self.assertIn(path, error)
                self.assertIn(message, error)
        self.assertEqual(os.listdir(self.dir), ["ids.npy"])

    def test_a_full_disk_leaves_nothing_behind(self):
        error = self.fails(1, *self.run_tensors("--output", "logits=/dev/full"))
        self.assertRegex(error, "/dev/full.*No space left on device")

    def test_a_device_is_written_to_and_not_replaced(self):
        result = self.call(*self.run_tensors("--output", "logits=/dev/stdout"))
        self.assertEqual(result.returncode, 0)
        self.ok(*self.run_tensors("--output", f"logits={self.logits}"))
        with open(self.logits, "rb") as file:
            self.assertEqual(result.stdout, file.read())

    def test_a_whole_file_replaces_an_old_one(self):
        with open(self.logits, "w") as file:
            file.write("old" * 100000)
        self.ok(*self.run_tensors("--output", f"logits={self.logits}"))
        self.assertEqual(read_npy(self.logits)[1], (1, 5, VOCAB))


class Inspect(RlxTest):
    def test_the_summary_names_format_architecture_parameters_and_types(self):
        out, err = self.ok("inspect", MODEL)
        self.assertEqual(err, "")
        self.assertRegex(out, r"(?m)^format +gguf$")
        self.assertRegex(out, r"(?m)^architecture +llama$")
        self.assertRegex(out, r"(?m)^parameters +5,246,208$")
        self.assertRegex(out, r"(?m)^  q8_0 +43 tensors")
        self.assertRegex(out, r"(?m)^  llama\.context_length = 1024$")
        self.assertNotIn("token_embd.weight", out)

    def test_tensors_are_listed_with_type_and_shape(self):
        out, _ = self.ok("inspect", MODEL, "--tensors")
        self.assertRegex(out, r"(?m)^  token_embd\.weight : q8_0\[2048, 256\]  557,056 B at \d")

    def test_json_holds_what_the_text_holds(self):
        summary = json.loads(self.ok("inspect", MODEL, "--json")[0])
        self.assertEqual(summary["format"], "gguf")
        self.assertEqual(summary["architecture"], "llama")
        self.assertEqual(summary["parameters"], 5246208)
        self.assertEqual(summary["dtypes"]["q8_0"]["tensors"], 43)
        self.assertEqual(summary["metadata"]["llama.block_count"], "6")
        self.assertNotIn("tensors", summary)
        tensors = json.loads(self.ok("inspect", MODEL, "--json", "--tensors")[0])["tensors"]
        self.assertEqual(len(tensors), 56)
        by_name = {tensor["name"]: tensor for tensor in tensors}
        embedding = by_name["token_embd.weight"]
        self.assertEqual(embedding["dtype"], "q8_0")
        self.assertEqual(embedding["shape"], [2048, 256])
        self.assertEqual(embedding["bytes"], 2048 * 256 // 32 * 34)

    def test_a_folder_is_inspected(self):
        summary = json.loads(self.ok("inspect", FOLDER, "--json")[0])
        self.assertEqual(summary["format"], "safetensors")
        self.assertEqual(summary["architecture"], "llama")

    def check_graph(self, text):
        """The shape of the text form: a head, one statement a line, values before their use."""
        lines = text.split("\n")
        self.assertRegex(lines[0], r'\Agraph "[^"]+" \(.*\) \{\Z')
        self.assertEqual(lines[-2:], ["}", ""])
        defined, outputs = set(), 0
        for line in lines[1:-2]:
            statement = re.sub(r'"[^"]*"', '""', line)
            names = re.findall(r"%[\w.]+", statement)
            if re.match(r"  output ", statement):
                outputs += 1
                self.assertEqual(set(names) - defined, set(), line)
                continue
            self.assertRegex(statement, r"\A  %[^=]+ = \w+.* : ")
            results = re.findall(r"%[\w.]+", statement.split(" = ")[0])
            self.assertEqual(set(names[len(results):]) - defined, set(), line)
            defined.update(results)
        self.assertGreater(outputs, 0)

    def test_graphs_are_whole_texts(self):
        source, _ = self.ok("inspect", MODEL, "--graph")
        self.check_graph(source)
        self.assertIn("rms_norm(", source)
        optimized, _ = self.ok("inspect", MODEL, "--graph=optimized")
        self.check_graph(optimized)
        self.assertNotEqual(source, optimized)

    def test_a_pass_can_be_left_out_by_name(self):
        plain, _ = self.ok("inspect", MODEL, "--graph=optimized")
        without, _ = self.ok("inspect", MODEL, "--graph=optimized", "--disable-pass", "fuse_swiglu",
                             "--disable-pass", "fuse_matmul_epilogue")
        self.assertNotEqual(plain, without)
        error = self.fails(1, "inspect", MODEL, "--graph=optimized", "--disable-pass", "fuse_all")
        self.assertRegex(error, "'fuse_all'.*fuse_swiglu")

    def test_passes_and_program_are_listed(self):
        self.assertRegex(self.ok("inspect", MODEL, "--passes")[0], r"(?m)^fold_constants +[\d.]+ ms")
        self.assertIn("matmul", self.ok("inspect", MODEL, "--program")[0])


class Plan(RlxTest):
    def plan(self, *arguments):
        return json.loads(self.ok("plan", *arguments, "--json")[0])

    def test_the_text_has_a_line_for_each_segment_and_the_peak(self):
        out, err = self.ok("plan", MODEL)
        self.assertEqual(err, "")
        self.assertRegex(out, rf"(?m)^weights +[\d,]+ B   mapped from {re.escape(MODEL)}")
        self.assertRegex(out, r"(?m)^state +[\d,]+ B   key/value cache, f16, 6 layers x 1,024 rows$")
        self.assertRegex(out, r"(?m)^io +[\d,]+ B")
        self.assertRegex(out, r"(?m)^work +[\d,]+ B   bound [\d,]+ B, gap [\d.]+ %")
        self.assertRegex(out, r"(?m)^arena +[\d,]+ B")
        self.assertRegex(out, r"(?m)^peak at step \d+ of \d+ \(.+\): .+ [\d,]+ B")

    def test_json_holds_every_figure(self):
        plan = self.plan(MODEL)
        segments = plan["segments"]
        self.assertEqual(list(segments), ["weights", "state", "io", "work"])
        # Keys and values, f16, 6 layers, 1,024 rows, 2 heads of 64.
        self.assertEqual(segments["state"]["bytes"], 2 * 2 * 6 * 1024 * 2 * 64)
        self.assertGreaterEqual(segments["work"]["bytes"], segments["work"]["lower_bound"])
        self.assertGreaterEqual(plan["arena_bytes"],
                                sum(segments[name]["bytes"] for name in ("state", "io", "work")))
        self.assertLessEqual(plan["mapped_weight_bytes"], os.path.getsize(MODEL))
        self.assertEqual(plan["weight_files"], [MODEL])
        self.assertTrue(0 <= plan["peak"]["step"] < plan["steps"])
        peak = sum(value["bytes"] for value in plan["peak"]["values"])
        self.assertLessEqual(peak, segments["work"]["bytes"])
        self.assertGreater(peak, segments["work"]["bytes"] // 2)

    def test_less_context_never_costs_more(self):
        previous = None
        for context in (1, 2, 16, 100, 512, 1023, 1024):
            state = self.plan(MODEL, "-c", str(context))["segments"]["state"]["bytes"]
            if previous is not None:
                self.assertLess(previous, state)
            previous = state

    def test_fewer_tokens_at_once_never_cost_more(self):
        previous = 0
        for tokens in (1, 8, 64, 512):
            plan = self.plan(MODEL, "-b", str(tokens))
            work = plan["segments"]["work"]["bytes"]
            self.assertLessEqual(previous, work)
            previous = work

    def test_a_run_takes_what_the_plan_says(self):
        arena = self.plan(MODEL, "-c", "64", "-b", "8", "-t", "2")["arena_bytes"]
        _, err = self.generate("-p", "x", "-n", "1", "-c", "64", "-b", "8", "-t", "2")
        self.assertIn(f"arena {arena:,} B", err)

    def test_no_weight_is_read(self):
        # Weights of 4 GiB that are a hole in the file: reading them would show in the memory.
        layers, width, inner, vocab = 2, 8192, 16384, 256
        metadata = {
            "general.architecture": "llama", "llama.block_count": layers,
            "llama.context_length": 2048, "llama.embedding_length": width,
            "llama.feed_forward_length": inner, "llama.attention.head_count": 64,
            "llama.attention.head_count_kv": 64, "llama.rope.freq_base": 10000.0,
            "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.vocab_size": vocab,
        }
        tensors = {"token_embd.weight": (vocab, width), "output_norm.weight": (width,)}
        for layer in range(layers):
            block = f"blk.{layer}."
            tensors[block + "attn_norm.weight"] = tensors[block + "ffn_norm.weight"] = (width,)
            for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
                tensors[f"{block}{name}.weight"] = (width, width)
            tensors[block + "ffn_gate.weight"] = tensors[block + "ffn_up.weight"] = (inner, width)
            tensors[block + "ffn_down.weight"] = (width, inner)
        path = self.path("large.gguf")
        size = write_sparse_gguf(path, metadata, tensors)
        self.assertGreater(size, 4 << 30)
        with open(self.path("plan.json"), "wb") as out:
            process = subprocess.Popen([RLX, "plan", path, "--json"], stdout=out)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        with open(self.path("plan.json")) as out:
            self.assertGreater(json.load(out)["segments"]["weights"]["bytes"], 4 << 30)
        self.assertLess(usage.ru_maxrss, 1 << 20)  # in KiB


class PlanReports(RlxTest):
    """What `rlx plan` says and writes besides its table."""

    SMALL = (MODEL, "-c", "128", "-b", "16", "-t", "2")

    def saved_plan(self, name, *arguments):
        out, _ = self.ok("plan", *(arguments or self.SMALL), "--json")
        with open(self.path(name), "w") as file:
            file.write(out)
        return self.path(name)

    def test_why_lists_the_peak_and_levers_by_what_they_save(self):
        out, _ = self.ok("plan", MODEL, "-c", "256", "--why")
        self.assertIn("alive at step", out)
        saved = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) B less", out)]
        self.assertGreater(len(saved), 2)
        self.assertEqual(saved, sorted(saved, reverse=True))
        # A lever's figure is that of a plan made with it.
        shorter = re.search(r"([\d,]+) B less: context 256 -> 128", out)
        bytes_of = lambda context: json.loads(
            self.ok("plan", MODEL, "-c", context, "--json")[0])["arena_bytes"]
        self.assertEqual(int(shorter.group(1).replace(",", "")), bytes_of("256") - bytes_of("128"))

    def test_top_adds_up_places_by_op_and_shape(self):
        out, _ = self.ok("plan", *self.SMALL, "--top", "2")
        self.assertEqual(len(re.findall(r"^ +[\d,]+ B +\d+ x \w+", out, re.MULTILINE)), 4)

    def test_a_saved_plan_is_proven_again_and_a_broken_one_is_not(self):
        path = self.saved_plan("plan.json")
        out, _ = self.ok("plan", path, "--check")
        self.assertIn("no two overlap", out)
        with open(path) as file:
            plan = json.load(file)
        work = [slot for slot in plan["slots"] if slot["segment"] == "work"]
        first, second = next((a, b) for a in work for b in work
                             if a is not b and a["first_step"] <= b["last_step"]
                             and b["first_step"] <= a["last_step"])
        first["offset"] = second["offset"]
        with open(path, "w") as file:
            json.dump(plan, file)
        self.assertIn("plan.json", self.fails(1, "plan", path, "--check"))

    def test_a_difference_is_told_and_can_fail(self):
        path = self.saved_plan("small.json")
        out, _ = self.ok("plan", *self.SMALL, "--diff", path, "--fail-if-grows")
        self.assertEqual(out, "no difference\n")
        grown = self.call("plan", MODEL, "-c", "256", "-b", "16", "-t", "2", "--diff", path,
                          "--fail-if-grows")
        self.assertEqual(grown.returncode, 1)
        self.assertIn(b"state", grown.stdout)
        self.assertIn(b"more than", grown.stderr)

    def test_pictures_are_whole_files_with_a_box_for_each_place(self):
        import xml.etree.ElementTree
        self.ok("plan", *self.SMALL, "--svg", self.path("p.svg"), "--html", self.path("p.html"))
        places = len(json.loads(self.ok("plan", *self.SMALL, "--json")[0])["slots"])
        svg = xml.etree.ElementTree.parse(self.path("p.svg")).getroot()
        titles = svg.findall(".//{http://www.w3.org/2000/svg}title")
        self.assertGreaterEqual(len(titles), places)
        with open(self.path("p.html")) as file:
            html = file.read()
        self.assertIn("<svg", html)
        self.assertNotRegex(html, r"(src|href)=\"http")

    def test_a_budget_is_kept_or_the_smallest_is_named(self):
        whole = json.loads(self.ok("plan", *self.SMALL, "--json")[0])
        total = whole["segments"]["weights"]["bytes"] + whole["arena_bytes"]
        _, err = self.ok("plan", *self.SMALL, "--budget", str(total))
        self.assertEqual(err, "")
        out, err = self.ok("plan", *self.SMALL, "--budget", str(total - 1), "--json")
        self.assertIn("token batch 16 -> ", err)
        plan = json.loads(out)
        self.assertLess(plan["segments"]["weights"]["bytes"] + plan["arena_bytes"], total)
        error = self.fails(1, "plan", *self.SMALL, "--budget", "1MiB")
        smallest = re.search(r"the smallest budget that works is ([\d,]+) B", error)
        self.ok("plan", *self.SMALL, "--budget", smallest.group(1).replace(",", ""))

    def test_blocks_are_listed_and_a_value_that_fits_none_is_named(self):
        out, _ = self.ok("plan", *self.SMALL, "--max-allocation", "256KiB", "--json")
        blocks = json.loads(out)["blocks"]
        self.assertGreater(len(blocks), 3)
        self.assertLessEqual(max(block["bytes"] for block in blocks), 256 << 10)
        self.assertIn("largest allocation",
                      self.fails(1, "plan", *self.SMALL, "--max-allocation", "4KiB"))

    def test_a_list_of_intervals_is_placed(self):
        out, _ = self.ok("plan", "tests/data/memory/minimalloc.C.csv", "--capacity", "1048576",
                         "--out", self.path("placed.csv"))
        for word in ("height", "lower bound", "gap", "optimal", "seconds"):
            self.assertIn(word, out)
        with open(self.path("placed.csv")) as file:
            rows = [line.strip().split(",") for line in file]
        column = {name: i for i, name in enumerate(rows[0])}
        values = [[int(row[column[name]]) for name in ("lower", "upper", "size", "offset")]
                  for row in rows[1:]]
        for i, (lower, upper, size, offset) in enumerate(values):
            self.assertLessEqual(offset + size, 1048576)
            for other_lower, other_upper, other_size, other_offset in values[:i]:
                if lower < other_upper and other_lower < upper:
                    self.assertTrue(offset + size <= other_offset
                                    or other_offset + other_size <= offset)


class BenchTest(RlxTest):
    def test_speed_memory_and_machine_are_reported_for_each_number_of_threads(self):
        json_file = self.path("bench.json")
        text, error = self.ok("bench", MODEL, "-p", "8", "-n", "4", "-t", "1,2", "-r", "2",
                              "--json", json_file)
        self.assertEqual(error, "")
        self.assertEqual(len(re.findall(r"^ +[12] prefill 8 ", text, re.MULTILINE)), 2, text)
        self.assertEqual(len(re.findall(r"^ +[12] decode 4 ", text, re.MULTILINE)), 2, text)
        with open(json_file) as file:
            report = json.load(file)
        self.assertEqual([result["threads"] for result in report["results"]], [1, 2])
        for result in report["results"]:
            self.assertGreater(result["peak_resident_bytes"], os.path.getsize(MODEL))
            for name in ("load_seconds", "first_token_seconds", "arena_bytes", "read_gb_s",
                         "peak_gflop_s"):
                self.assertIn(name, result)
            for phase in ("prefill", "decode"):
                speed = result[phase]["tokens_per_second"]
                self.assertEqual(len(speed["samples"]), 2)
                self.assertLessEqual(speed["least"], speed["median"])
                self.assertLessEqual(speed["median"], speed["most"])
                self.assertGreater(result[phase]["flops_per_token"], 0)

    def test_a_profile_lists_ops_and_kernels(self):
        text, _ = self.ok("bench", MODEL, "-p", "0", "-n", "2", "-r", "1", "--profile")
        self.assertIn("decode, by op", text)
        self.assertRegex(text, r"matmul\.packed q8_0 +\d+ ")
        self.assertNotIn("prefill", text)

    def test_a_trace_has_a_slice_for_each_step_and_thread(self):
        trace_file = self.path("trace.json")
        self.ok("bench", MODEL, "-p", "3", "-n", "0", "-t", "2", "-r", "1", "--trace", trace_file)
        with open(trace_file) as file:
            events = json.load(file)["traceEvents"]
        slices = [event for event in events if event["ph"] == "X"]
        plan, _ = self.ok("plan", MODEL)
        steps = int(re.search(r"peak at step \d+ of (\d+)", plan).group(1))
        self.assertEqual(len(slices), 2 * steps)
        for thread in (0, 1):
            ends = 0
            for event in (event for event in slices if event["tid"] == thread):
                self.assertGreaterEqual(event["ts"] + 1e-3, ends)
                ends = event["ts"] + event["dur"]

    def test_nothing_to_measure_is_an_error(self):
        self.assertIn("-p", self.fails(2, "bench", MODEL, "-p", "0", "-n", "0"))


class Tokenize(RlxTest):
    def test_text_becomes_ids_on_one_line(self):
        self.assertEqual(self.ok("tokenize", MODEL, "In the beginning")[0], "2046 1276 258 1932 1299\n")

    def test_ids_become_text(self):
        for ids in ("1276 258 1932 1299", "1276,258, 1932,\n1299"):
            self.assertEqual(self.ok("tokenize", MODEL, ids, "--decode")[0], "In the beginning\n")

    def test_both_directions_read_stdin(self):
        text = "KING RICHARD:\nWhat say you? \u00e4\u4e16\U0001f600"
        ids, _ = self.ok("tokenize", MODEL, "-", "--no-special", stdin=text.encode())
        self.assertEqual(ids.count("\n"), 1)
        self.assertEqual(self.ok("tokenize", MODEL, "-", "--decode", stdin=ids.encode())[0], text + "\n")

    def test_special_tokens_can_be_left_out(self):
        with_special, _ = self.ok("tokenize", MODEL, "thou")
        without, _ = self.ok("tokenize", MODEL, "thou", "--no-special")
        self.assertEqual(with_special, f"{BOS} {without}")
        out, _ = self.ok("tokenize", MODEL, with_special, "--decode", "--no-special")
        self.assertEqual(out, "thou\n")

    def test_a_text_may_begin_with_a_dash(self):
        ids, _ = self.ok("tokenize", MODEL, "--no-special", "--", "-thou")
        self.assertEqual(self.ok("tokenize", MODEL, "--decode", ids)[0], "-thou\n")

    def test_an_empty_text_is_the_beginning_token(self):
        self.assertEqual(self.ok("tokenize", MODEL, "")[0], f"{BOS}\n")

    def test_bad_ids_are_named(self):
        self.assertIn("'x'", self.fails(1, "tokenize", MODEL, "1 x", "--decode"))
        self.assertIn("99999", self.fails(1, "tokenize", MODEL, "99999", "--decode"))
        self.assertIn("-1", self.fails(1, "tokenize", MODEL, "--decode", "--", "-1"))
        self.assertIn("'99999999999'", self.fails(1, "tokenize", MODEL, "99999999999", "--decode"))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    RLX = os.path.abspath(sys.argv.pop(1))
    unittest.main()
