"""Small writers and readers of the formats that the rlx command takes: .npy and GGUF.

Written by hand over struct, so that the tests need nothing but Python.
"""

import ast
import struct

# The .npy name of an element type, and its struct letter.
LETTERS = {"<i8": "q", "<i4": "i", "<i2": "h", "<f4": "f", "<f8": "d"}


def write_npy(path, dtype, shape, values):
    header = repr({"descr": dtype, "fortran_order": False, "shape": tuple(shape)}).encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        file.write(struct.pack(f"<{len(values)}{LETTERS[dtype]}", *values))


def read_npy(path):
    """The element type, the shape, and the elements as a flat tuple."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError(f"{path} is no .npy file of version 1.0")
    (length,) = struct.unpack_from("<H", data, 8)
    header = ast.literal_eval(data[10:10 + length].decode())
    dtype = header["descr"]
    size = struct.calcsize("<" + LETTERS[dtype])
    count = (len(data) - 10 - length) // size
    return dtype, header["shape"], struct.unpack_from(f"<{count}{LETTERS[dtype]}", data, 10 + length)


def gguf_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_value(value):
    """Type tag and value of a metadata entry: bool, int (u32), float (f32), str or list of str."""
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + gguf_string(value)
    return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(gguf_string(item) for item in value)


def write_sparse_gguf(path, metadata, tensors):
    """A GGUF file whose f32 weights are holes in the file: they take no space until written.

    `tensors` maps a name to its extents, outermost first.
    """
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        header += gguf_string(key) + gguf_value(value)
    offset = 0
    for name, extents in tensors.items():
        header += gguf_string(name) + struct.pack("<I", len(extents))
        header += struct.pack(f"<{len(extents)}Q", *reversed(extents)) + struct.pack("<IQ", 0, offset)
        size = 4
        for extent in extents:
            size *= extent
        offset += (size + 31) // 32 * 32
    start = (len(header) + 31) // 32 * 32
    with open(path, "wb") as file:
        file.write(header)
        file.truncate(start + offset)
    return start + offset
