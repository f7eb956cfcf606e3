#!/usr/bin/env python3
"""Runs `rlx bench` and llama.cpp's llama-bench on the same files, alternating, and prints ratios.

usage: bench/compare_llama_cpp.py [options] MODEL.gguf...

Each round runs every program once on each file and number of threads: load, one prompt to warm up
(its end is the time to the first token), the prompt again and then single tokens, both timed. A
machine is never quite still, so only ratios of interleaved rounds count: a ratio is made within a
round, and the table shows the median and the range over the rounds. With several builds of the peer
(with OpenMP and with its own threads, say) the faster one counts, in each line. The peer runs with
flash attention on.

Options:
  --rlx PATH        the rlx program (default: build/release/tools/rlx)
  --peer PATH       a llama-bench; may be given several times
  --build DIR       build the peer in DIR from the source of PyPI's llama-cpp-python, with OpenMP and
                    without (for this processor; takes long); an archive that is in DIR is used
  -p N, -n N        prompt tokens (default 512) and generated tokens (default 64)
  -t LIST           numbers of threads (default 1,2)
  --rounds N        rounds (default 3)
  --samples FILE    add the measurements to this file, one JSON object a line, and make the table of
                    all that it holds: rounds may be spread over several calls
  --out FILE        write the table there too, as Markdown
"""

import argparse
import datetime
import glob
import json
import os
import shlex
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

MIB = 1 << 20
PACKAGE = "llama-cpp-python"
# What is measured: name, digits, whether more is better.
FIGURES = {
    "decode": ("decode, tokens/s", 1, True),
    "prefill": ("prefill, tokens/s", 1, True),
    "load": ("load, ms", 0, False),
    "first": ("first token, ms", 0, False),
    "resident": ("peak resident, MiB", 0, False),
}


def run(command, **options):
    """Runs a command that must succeed; its stdout."""
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, **options)
    if result.returncode != 0:
        sys.exit(f"'{shlex.join(command)}' ended with {result.returncode}.")
    return result.stdout


def build_peer(directory):
    """The llama-bench programs built in the directory, from the package's source archive."""
    os.makedirs(directory, exist_ok=True)
    pattern = os.path.join(directory, "llama_cpp_python-*.tar.gz")
    if not glob.glob(pattern):
        run([sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:",
             "--dest", directory, PACKAGE], stderr=None)
    archive = sorted(glob.glob(pattern))[-1]
    root = os.path.join(directory, os.path.basename(archive)[:-len(".tar.gz")])
    if not os.path.isdir(root):
        with tarfile.open(archive) as tar:
            tar.extractall(directory, filter="data")
    source = os.path.join(root, "vendor", "llama.cpp")
    programs = []
    for name, openmp in (("openmp", "ON"), ("threads", "OFF")):
        build = os.path.join(directory, name)
        run(["cmake", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON",
             f"-DGGML_OPENMP={openmp}", "-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_BUILD_TESTS=OFF",
             "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_SERVER=OFF", "-DLLAMA_BUILD_APP=OFF",
             "-DLLAMA_OPENSSL=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF"])
        run(["cmake", "--build", build, "--parallel", "--target", "llama-bench"])
        programs.append(os.path.join(build, "bin", "llama-bench"))
    return programs


def rlx_command(options, model, threads):
    return [options.rlx, "bench", model, "-p", str(options.prompt), "-n", str(options.tokens),
            "-t", str(threads), "-r", "1"]


def peer_command(peer, options, model, threads):
    return [peer, "-m", model, "-p", str(options.prompt), "-n", str(options.tokens),
            "-t", str(threads), "-r", "1", "-fa", "1", "-o", "json", "--progress"]


def measure_rlx(options, model, threads):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "bench.json")
        run([*rlx_command(options, model, threads), "--json", file])
        with open(file) as opened:
            result = json.load(opened)["results"][0]
    figures = {"load": 1e3 * result["load_seconds"]["samples"][0],
               "first": 1e3 * result["first_token_seconds"],
               "resident": result["peak_resident_bytes"] / MIB,
               "read_gb_s": result["read_gb_s"], "peak_gflop_s": result["peak_gflop_s"]}
    for phase in ("prefill", "decode"):
        if phase in result:
            figures[phase] = result[phase]["tokens_per_second"]["median"]
            figures[phase + "_gb_s"] = result[phase]["gb_s"]
            figures[phase + "_gflop_s"] = result[phase]["gflop_s"]
    return figures


def measure_peer(peer, options, model, threads):
    """Load and first token come from when the peer says that it begins the next part."""
    process = subprocess.Popen(peer_command(peer, options, model, threads), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    moments = {}
    for line in process.stderr:
        for key, text in (("start", "benchmark 1/"), ("loaded", "warmup "), ("first", " run 1/1")):
            if text in line and (key != "first" or "loaded" in moments) and (
                    key != "start" or "starting" in line):
                moments.setdefault(key, time.monotonic())
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 or not {"start", "loaded", "first"} <= moments.keys():
        sys.exit(f"'{shlex.join(peer_command(peer, options, model, threads))}' failed.")
    figures = {"load": 1e3 * (moments["loaded"] - moments["start"]),
               "resident": usage.ru_maxrss * 1024 / MIB}
    if options.prompt > 0:
        figures["first"] = 1e3 * (moments["first"] - moments["start"])
    for test in json.loads(output):
        figures["prefill" if test["n_prompt"] > 0 else "decode"] = test["avg_ts"]
    return figures


def measure_round(options, peers):
    samples = []
    for model in options.models:
        for threads in options.threads:
            sample = {"model": os.path.basename(model), "bytes": os.path.getsize(model),
                      "threads": threads, "prompt": options.prompt, "tokens": options.tokens,
                      "rlx": measure_rlx(options, model, threads),
                      "peers": {peer: measure_peer(peer, options, model, threads)
                                for peer in peers}}
            samples.append(sample)
            if options.samples:
                with open(options.samples, "a") as file:
                    file.write(json.dumps(sample) + "\n")
            print(f"{sample['model']} {threads}: measured", file=sys.stderr)
    return samples


def best_of_peers(sample, figure):
    values = [figures[figure] for figures in sample["peers"].values() if figure in figures]
    return (max if FIGURES[figure][2] else min)(values) if values else None


def describe(values, digits, unit=""):
    """"median (least to most)", or the value when there is one."""
    text = f"{statistics.median(values):.{digits}f}{unit}"
    if len(values) > 1:
        text += f" ({min(values):.{digits}f} to {max(values):.{digits}f})"
    return text


def table(samples, figure):
    title, digits, more_is_better = FIGURES[figure]
    rows = []
    groups = {}
    for sample in samples:
        key = (sample["model"], sample["threads"])
        if figure in sample["rlx"] and best_of_peers(sample, figure) is not None:
            groups.setdefault(key, []).append(sample)
    if not groups:
        return ""
    for (model, threads), group in groups.items():
        ours = [sample["rlx"][figure] for sample in group]
        theirs = [best_of_peers(sample, figure) for sample in group]
        ratios = [mine / other for mine, other in zip(ours, theirs)]
        rows.append(f"| {model} | {threads} | {describe(ours, digits)} | "
                    f"{describe(theirs, digits)} | {describe(ratios, 2, 'x')} | {len(group)} |")
    direction = "more is better" if more_is_better else "less is better"
    head = (f"## {title[0].upper()}{title[1:]}\n\n"
            f"| model | threads | rlx | llama.cpp | ratio ({direction}) | rounds |\n"
            "|---|---|---|---|---|---|\n")
    return head + "\n".join(rows) + "\n"


def floors(samples):
    """How near rlx comes to what the machine can do, measured in the same run."""
    rows, groups = [], {}
    for sample in samples:
        groups.setdefault((sample["model"], sample["threads"]), []).append(sample["rlx"])
    for (model, threads), group in groups.items():
        cells = []
        for value, limit in (("decode_gb_s", "read_gb_s"), ("prefill_gflop_s", "peak_gflop_s")):
            known = [one for one in group if value in one]
            cells.append(describe([one[value] for one in known], 1) if known else "")
            cells.append(describe([100 * one[value] / one[limit] for one in known], 0, " %")
                         if known else "")
        rows.append(f"| {model} | {threads} | " + " | ".join(cells) + " |")
    return ("## Floors of rlx\n\nShares are of the read bandwidth and of the f32 multiply-add peak "
            "measured in the same run.\n\n"
            "| model | threads | decode, GB/s | share | prefill, GFLOP/s | share |\n"
            "|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n")


def processor_name():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return "unknown"


def report(samples, commands):
    lengths = sorted({(sample["prompt"], sample["tokens"]) for sample in samples})
    text = (f"# rlx beside llama.cpp, {datetime.date.today().isoformat()}\n\n"
            f"Processor: {processor_name()}, {os.cpu_count()} processors. "
            + ", ".join(f"{prompt} prompt and {tokens} generated tokens"
                        for prompt, tokens in lengths)
            + ". Medians and ranges over rounds that alternate between the programs; ratios are "
            "made within a round.\n\nCommands:\n\n"
            + "".join(f"    {command}\n" for command in commands) + "\n")
    return text + "\n".join(filter(None, [table(samples, figure) for figure in FIGURES]
                                   + [floors(samples)]))


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--rlx", default="build/release/tools/rlx")
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--build")
    parser.add_argument("-p", dest="prompt", type=int, default=512)
    parser.add_argument("-n", dest="tokens", type=int, default=64)
    parser.add_argument("-t", dest="threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples")
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.help:
        print(__doc__)
        return
    options.threads = [int(number) for number in options.threads.split(",")]
    peers = options.peer + (build_peer(options.build) if options.build else [])
    if options.models and not peers:
        sys.exit("No peer: give --peer PATH of a llama-bench, or --build DIR.")
    samples = []
    if options.samples and os.path.exists(options.samples):
        with open(options.samples) as file:
            samples = [json.loads(line) for line in file]
    for _ in range(options.rounds if options.models else 0):
        samples += measure_round(options, peers)
    if not samples:
        sys.exit("Nothing is measured: give models, or --samples FILE with earlier measurements.")
    shown = samples[0]
    options.rlx = os.path.basename(options.rlx)
    options.prompt, options.tokens = shown["prompt"], shown["tokens"]
    commands = [shlex.join(rlx_command(options, "MODEL", "THREADS")),
                shlex.join(peer_command("llama-bench", options, "MODEL", "THREADS"))]
    text = report(samples, commands)
    print(text)
    if options.out:
        with open(options.out, "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
