#!/usr/bin/env python3
"""The perplexity of the demonstration model in plain numpy, to compare 'rlx perplexity' with.

Reads a GGUF file of the Llama architecture with q8_0 or f32 weights, runs it in double precision, and
scores a text as llama.cpp's tool does: pieces of the context's length, each beginning with the
beginning token, of which the second half counts. The ids come from 'rlx tokenize --no-special'.
Needs numpy.

usage: tests/cli/reference_perplexity.py MODEL.gguf CONTEXT < ids
"""

import struct
import sys

import numpy as np

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q",
           12: "<d"}


class Gguf:
    def __init__(self, path):
        self.data = open(path, "rb").read()
        self.at = 8
        num_tensors, num_values = self.scalar("<Q"), self.scalar("<Q")
        self.values = {}
        for _ in range(num_values):
            key = self.text()
            self.values[key] = self.value(self.scalar("<I"))
        tensors = []
        for _ in range(num_tensors):
            name = self.text()
            shape = [self.scalar("<Q") for _ in range(self.scalar("<I"))][::-1]
            tensors.append((name, shape, self.scalar("<I"), self.scalar("<Q")))
        alignment = self.values.get("general.alignment", 32)
        start = (self.at + alignment - 1) // alignment * alignment
        self.tensors = {name: self.tensor(shape, kind, start + offset)
                        for name, shape, kind, offset in tensors}

    def scalar(self, form):
        value, = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self):
        size = self.scalar("<Q")
        self.at += size
        return self.data[self.at - size:self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            inner = self.scalar("<I")
            return [self.value(inner) for _ in range(self.scalar("<Q"))]
        return self.scalar(SCALARS[kind])

    def tensor(self, shape, kind, offset):
        count = int(np.prod(shape))
        if kind == 0:
            return np.frombuffer(self.data, "<f4", count, offset).reshape(shape).astype(float)
        if kind == 8:  # blocks of a f16 scale and 32 signed bytes
            blocks = np.frombuffer(self.data, np.dtype([("d", "<f2"), ("q", "i1", 32)]),
                                   count // 32, offset)
            return (blocks["d"].astype(float)[:, None] * blocks["q"]).reshape(shape)
        raise SystemExit(f"tensor type {kind} is not read here")


def run(model, ids):
    """The logits of every token."""
    value, w = model.values, model.tensors
    heads, kv_heads = value["llama.attention.head_count"], value["llama.attention.head_count_kv"]
    epsilon, base = value["llama.attention.layer_norm_rms_epsilon"], value["llama.rope.freq_base"]
    x = w["token_embd.weight"][ids]
    size = w["blk.0.attn_q.weight"].shape[0] // heads
    angles = np.arange(len(ids))[:, None] / base ** (np.arange(0, size, 2) / size)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]

    def norm(v, weight):
        return v / np.sqrt((v * v).mean(-1, keepdims=True) + epsilon) * weight

    def rotate(v):  # neighbouring pairs, the order of Llama's GGUF files
        even, odd = v[..., 0::2], v[..., 1::2]
        out = np.empty_like(v)
        out[..., 0::2], out[..., 1::2] = even * cos - odd * sin, even * sin + odd * cos
        return out

    mask = np.triu(np.full((len(ids), len(ids)), -np.inf), 1)
    for layer in range(value["llama.block_count"]):
        part = lambda name: w[f"blk.{layer}.{name}.weight"]
        h = norm(x, part("attn_norm"))
        q = rotate((h @ part("attn_q").T).reshape(-1, heads, size))
        k = rotate((h @ part("attn_k").T).reshape(-1, kv_heads, size))
        v = (h @ part("attn_v").T).reshape(-1, kv_heads, size)
        k, v = (np.repeat(t, heads // kv_heads, axis=1) for t in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(size) + mask
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        x = x + np.einsum("hqk,khd->qhd", scores, v).reshape(len(ids), -1) @ part("attn_output").T
        h = norm(x, part("ffn_norm"))
        gate = h @ part("ffn_gate").T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ part("ffn_up").T)) @ part("ffn_down").T
    output = w.get("output.weight", w["token_embd.weight"])
    return norm(x, w["output_norm.weight"]) @ output.T


def main():
    model, context = Gguf(sys.argv[1]), int(sys.argv[2])
    bos = model.values["tokenizer.ggml.bos_token_id"]
    tokens = [bos] + [int(word) for word in sys.stdin.read().split()]
    surprises = []
    for start in range(0, len(tokens) // context * context, context):
        piece = tokens[start:start + context]
        logits = run(model, np.array([bos] + piece[1:]))
        logits -= logits.max(-1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
        surprises += [-logits[i, piece[i + 1]] for i in range(context // 2, context - 1)]
    s = np.array(surprises)
    deviation = np.sqrt(((s * s).mean() - s.mean() ** 2) / (len(s) - 1))
    print(f"perplexity {np.exp(s.mean()):.4f} +/- {deviation * np.exp(s.mean()):.5f}")


if __name__ == "__main__":
    main()
