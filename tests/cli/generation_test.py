#!/usr/bin/env python3
"""Tests of chatting, of saved states and of the perplexity, run as a user would run them.

usage: tests/cli/generation_test.py RLX [unittest arguments], from the root of the source tree
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

import cli_test
from cli_test import MODEL, TIMEOUT, RlxTest

TEXT = "models/demo/sample.txt"
PLAIN = ["--chat-template", "plain", "--temp", "0"]


class Chat(RlxTest):
    def chat(self, lines, *arguments, **options):
        text = "".join(line + "\n" for line in lines).encode()
        return self.ok("chat", MODEL, *arguments, stdin=text, **options)

    def test_a_turn_is_what_the_template_makes_of_it(self):
        out, _ = self.chat(["Who art thou?"], *PLAIN, "-n", "8")
        text, _ = self.generate("-p", "User: Who art thou?\nAssistant:", "--temp", "0", "-n", "8")
        self.assertEqual(out, text)

    def test_a_later_turn_sees_those_before(self):
        arguments = [*PLAIN, "-n", "8", "--system", "A play."]
        out, _ = self.chat(["Who art thou?", "And whence?"], *arguments)
        # An answer may hold line breaks; the first one is known from a chat of one turn.
        first, _ = self.chat(["Who art thou?"], *arguments)
        self.assertTrue(out.startswith(first))
        prompt = ("A play.\nUser: Who art thou?\nAssistant: " + first[:-1].strip() +
                  "\nUser: And whence?\nAssistant:")
        second, _ = self.generate("-p", prompt, "--temp", "0", "-n", "8")
        self.assertEqual(out[len(first):], second)

    def test_commands_are_no_turns(self):
        out, err = self.chat(["/help", "/nothing", "", "/exit", "Never read"], *PLAIN)
        self.assertEqual(out, "")
        self.assertIn("/reset", err)
        self.assertIn("no command '/nothing'", err)

    def test_reset_forgets_the_conversation(self):
        once, _ = self.chat(["Who art thou?"], *PLAIN, "-n", "8")
        twice, _ = self.chat(["Speak.", "/reset", "Who art thou?"], *PLAIN, "-n", "8")
        self.assertTrue(twice.endswith(once))

    def test_a_seed_replays_a_conversation(self):
        lines = ["Who art thou?", "Whence?"]
        arguments = ["--chat-template", "plain", "-n", "8", "--temp", "1.5"]
        first = self.chat(lines, *arguments, "--seed", "3")[0]
        self.assertEqual(self.chat(lines, *arguments, "--seed", "3")[0], first)
        self.assertNotEqual(self.chat(lines, *arguments, "--seed", "4")[0], first)

    def test_a_model_without_a_template_says_what_to_do(self):
        error = self.fails(1, "chat", MODEL)
        self.assertIn("has no chat template", error)
        self.assertRegex(error, "--chat-template: a file, or one of chatml, .*plain")
        self.assertIn("'nothing' is neither a file", self.fails(1, "chat", MODEL, "--chat-template",
                                                                "nothing"))

    def test_a_template_may_be_a_file_and_its_faults_are_named(self):
        path = self.path("own.jinja")
        with open(path, "w") as file:
            file.write("{{ bos_token }}{% for m in messages %}{{ m.role|title }}: {{ m.content }}\n"
                       "{% endfor %}{{ 'Assistant:' if add_generation_prompt }}")
        own, _ = self.chat(["Who art thou?"], "--chat-template", path, "--temp", "0", "-n", "8")
        self.assertEqual(own, self.chat(["Who art thou?"], *PLAIN, "-n", "8")[0])
        with open(path, "w") as file:
            file.write("a\n{% import 'x' %}")
        error = self.fails(1, "chat", MODEL, "--chat-template", path)
        self.assertIn(f"{path}: line 2: The statement 'import' is not supported.", error)
        with open(path, "w") as file:
            file.write("{{ raise_exception('Not today.') }}")
        self.assertIn("refuses this conversation: Not today.",
                      self.fails(1, "chat", MODEL, "--chat-template", path, stdin=b"Hi\n"))

    def make_folder(self, **files):
        """A model folder with a tokenizer of single characters and these files."""
        folder = tempfile.mkdtemp(dir=self.dir)
        for name in os.listdir("tests/data/small/llama"):
            shutil.copy(os.path.join("tests/data/small/llama", name), folder)
        vocab = {chr(code): code - 33 for code in range(33, 127)}
        vocab.update({f"extra{i}": i for i in range(len(vocab), 320)})
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                      "use_regex": True}
        tokenizer = {"version": "1.0", "added_tokens": [], "normalizer": None,
                     "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
                     "model": {"type": "BPE", "vocab": vocab, "merges": []}}
        files = {"tokenizer.json": json.dumps(tokenizer), **files}
        for name, content in files.items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(content)
        return folder

    def test_a_folder_brings_its_template_in_either_file(self):
        source = "{{ bos_token }}{% for m in messages %}[{{ m.content }}]{% endfor %}"
        turn = {"stdin": b"Hi\n"}
        self.assertIn("has no chat template", self.fails(1, "chat", self.make_folder()))
        config = {"chat_template": [{"name": "tools", "template": "{% bad %}"},
                                    {"name": "default", "template": source}],
                  "bos_token": {"content": "<s>"}}
        folder = self.make_folder(**{"tokenizer_config.json": json.dumps(config)})
        out, _ = self.ok("chat", folder, "-n", "4", "--temp", "0", **turn)
        direct, _ = self.ok("run", folder, "-p", "<s>[Hi]", "-n", "4", "--temp", "0")
        self.assertEqual(out, direct)
        # The file of its own comes first.
        folder = self.make_folder(**{"tokenizer_config.json": json.dumps(config),
                                     "chat_template.jinja": "{% bad %}"})
        self.assertIn("chat_template.jinja: line 1: The statement 'bad'",
                      self.fails(1, "chat", folder, **turn))
        folder = self.make_folder(**{"tokenizer_config.json": "{\"chat_template\": 5}"})
        self.assertIn("'chat_template' is neither", self.fails(1, "chat", folder, **turn))

    def test_a_conversation_that_does_not_fit_is_a_clear_end(self):
        result = self.call("chat", MODEL, *PLAIN, "-c", "24", stdin=b"Who art thou?\nAnd whence?\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"The context is full", result.stderr)
        self.assertRegex(result.stderr.decode(),
                         r"The conversation has \d+ tokens, but the context holds 24 tokens")

    def start(self, *arguments, **options):
        process = subprocess.Popen([cli_test.RLX, "chat", MODEL, *PLAIN, *arguments], **options)
        self.addCleanup(process.kill)
        return process

    def test_ctrl_c_stops_a_chat_that_is_no_terminal(self):
        process = self.start(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for stream in (process.stdin, process.stdout, process.stderr):
            self.addCleanup(stream.close)
        process.stdin.write(b"Who art thou?\n")
        process.stdin.flush()
        process.stdout.read(5)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(TIMEOUT), 130)

    def test_on_a_terminal_lines_are_edited_and_ctrl_c_stops_an_answer(self):
        main, end = pty.openpty()
        self.addCleanup(os.close, main)
        process = self.start(stdin=end, stdout=end, stderr=end, start_new_session=True,
                             env={**os.environ, "TERM": "xterm"})
        os.close(end)
        shown = b""

        def wait_for(text, after=0):
            nonlocal shown
            deadline = time.monotonic() + TIMEOUT
            while text not in shown[after:] and time.monotonic() < deadline:
                try:
                    shown += os.read(main, 4096)
                except OSError:
                    break
            self.assertIn(text, shown[after:])

        wait_for(b"> ")
        os.write(main, b"/hXelp\x1b[D\x1b[D\x1b[D\x08\x05\r")  # the X goes, the cursor to the end
        wait_for(b"/reset   forget")
        wait_for(b"> ", shown.index(b"/reset   forget"))
        before = len(shown)
        os.write(main, b"Who art thou?\r")
        wait_for(b"\n", before + 20)
        wait_for(b" ", len(shown))  # the answer has begun
        process.send_signal(signal.SIGINT)
        after = len(shown)
        wait_for(b"> ", after)
        self.assertIsNone(process.poll())
        os.write(main, b"/exit\r")
        self.assertEqual(process.wait(TIMEOUT), 0)


class SavedState(RlxTest):
    ARGUMENTS = ["--temp", "0", "-n", "8"]

    def test_a_state_saves_reading_and_changes_nothing(self):
        path = self.path("a.state")
        prompt = "In the beginning God created the heaven and the earth."
        self.generate("-p", prompt, *self.ARGUMENTS, "--save-state", path)
        longer = prompt + " And the"
        fresh, err = self.generate("-p", longer, *self.ARGUMENTS)
        self.assertNotIn("kept from before", err)
        loaded, err = self.generate("-p", longer, *self.ARGUMENTS, "--load-state", path)
        self.assertEqual(loaded, fresh)
        kept = int(re.search(r"(\d+) of them kept from before", err).group(1))
        self.assertGreaterEqual(kept, 10)
        # A larger context takes it too, a smaller one that holds it as well.
        for context in ("512", "64"):
            out, err = self.generate("-p", longer, *self.ARGUMENTS, "--load-state", path, "-c", context)
            self.assertEqual(out, fresh)
            self.assertIn("kept from before", err)
        # Another prompt shares nothing but the beginning token.
        out, _ = self.generate("-p", "KING RICHARD:\n", *self.ARGUMENTS, "--load-state", path)
        self.assertEqual(out, self.generate("-p", "KING RICHARD:\n", *self.ARGUMENTS)[0])

    def test_a_chat_goes_on_where_it_was_saved(self):
        path = self.path("chat.state")
        call = ["chat", MODEL, *PLAIN, "-n", "8"]
        out, _ = self.ok(*call, "--save-state", path, stdin=b"Who art thou?\n")
        self.assertGreater(os.path.getsize(path), 1000)
        self.assertEqual(self.ok(*call, "--load-state", path, stdin=b"Who art thou?\n")[0], out)

    def test_a_state_that_does_not_belong_here_is_refused(self):
        path = self.path("a.state")
        self.generate("-p", "In the beginning", "-n", "4", "--save-state", path)
        run = ["run", MODEL, "-p", "In the", "-n", "1", "--load-state"]
        for model, more, message in (
                ("models/demo/demo-Q4_0.gguf", [], "is of another model"),
                (MODEL, ["--cache-type", "f32"], "cache in f16.*cache in f32"),
                (MODEL, ["--activations", "float"], "int8 activations.*float activations"),
                (MODEL, ["-c", "4"], "holds 8 tokens, but the context holds 4")):
            with self.subTest(message):
                error = self.fails(1, "run", model, "-p", "In", "-n", "1", "--load-state", path, *more)
                self.assertIn(path, error)
                self.assertRegex(error, message)
        with open(path, "rb") as file:
            whole = file.read()
        for size in (0, 8, 12, 16, 24, 32, 40, 100, len(whole) // 2, len(whole) - 1):
            with open(path, "wb") as file:
                file.write(whole[:size])
            self.assertRegex(self.fails(1, *run, path), "not a saved state|cut or damaged")
        damaged = bytearray(whole)
        damaged[-100] ^= 1
        with open(path, "wb") as file:
            file.write(damaged)
        self.assertIn("The cache of the state is damaged", self.fails(1, *run, path))
        self.assertIn("No such file", self.fails(1, *run, self.path("none.state")))

    def test_a_state_that_cannot_be_written_is_an_error(self):
        result = self.call("run", MODEL, "-p", "In", "-n", "1", "--save-state",
                           self.path("none/a.state"))
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"Cannot write the file", result.stderr)
        self.assertEqual(os.listdir(self.dir), [])


class Perplexity(RlxTest):
    def measure(self, *arguments):
        out, err = self.ok("perplexity", MODEL, "--file", TEXT, *arguments)
        match = re.fullmatch(r"perplexity ([\d.]+) \+/- ([\d.]+)\n", out)
        self.assertIsNotNone(match, out)
        return float(match.group(1)), float(match.group(2)), err

    def test_it_is_what_numpy_computes(self):
        # From tests/cli/reference_perplexity.py.
        for context, expected, deviation in (("64", 6.2031, 1.40529), ("32", 5.7888, 1.06604)):
            value, error, err = self.measure("-c", context, "--activations", "float",
                                             "--cache-type", "f32")
            self.assertAlmostEqual(value / expected, 1, delta=1e-3)
            self.assertAlmostEqual(error / deviation, 1, delta=1e-3)
        self.assertIn("512 in 16 pieces of 32, 240 of them scored", err)

    def test_it_does_not_depend_on_the_batch_or_the_threads(self):
        first = self.measure("-c", "64")[:2]
        self.assertEqual(self.measure("-c", "64", "-b", "7")[:2], first)
        self.assertEqual(self.measure("-c", "64", "-t", "1")[:2], first)

    def test_int8_activations_cost_little(self):
        self.assertAlmostEqual(self.measure("-c", "64")[0] / 6.2031, 1, delta=0.02)

    def test_pieces_may_be_fewer(self):
        _, _, err = self.measure("-c", "64", "--chunks", "2")
        self.assertIn("128 in 2 pieces of 64, 62 of them scored", err)

    def test_a_text_that_is_too_short_is_named(self):
        error = self.fails(1, "perplexity", MODEL, "--file", TEXT)
        self.assertRegex(error, "sample.txt: The text has 513 tokens.*context of 512.*at least 1024")
        self.assertIn("none.txt", self.fails(1, "perplexity", MODEL, "--file", self.path("none.txt")))


if __name__ == "__main__":
    cli_test.RLX = os.path.abspath(sys.argv.pop(1))
    unittest.main()
