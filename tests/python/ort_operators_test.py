"""Operators of com.microsoft against ONNX Runtime's CPU provider: random attributes, shapes, types and optional
inputs. A case is one node; a model has some dozen of them, is compiled once, and each node's outputs are compared.

Integers are compared exactly, floats by the error relative to the largest element. Where ONNX Runtime departs from
its own specification, the case brings the values that the specification gives. PRUNER_LONG_TESTS=N draws N rounds of
each operator; the short run draws one. ORT_OPERATORS="MoE QMoE" draws these alone, PRUNER_SEED=N other cases.

Needs onnx and onnxruntime; PRUNER says where the program is.
"""

import os
import sys
import unittest
from typing import Any, NamedTuple, Optional

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
try:
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
import pruner
from pruner import PrunerError

ROUNDS = int(os.environ.get("PRUNER_LONG_TESTS") or 1)
SEED = int(os.environ.get("PRUNER_SEED") or 0)
CASES = 12  # of a model
F32, F16 = np.float32, np.float16


class Const(NamedTuple):
    """An input that is an initializer: an array, or a TensorProto of a type that numpy lacks."""

    value: Any


class Case(NamedTuple):
    """A node. `inputs`: arrays, Const or None; `expected`: what it computes, where ONNX Runtime is not asked."""

    op: str
    inputs: list
    attributes: dict = {}
    outputs: tuple = (True,)  # whether each is wanted
    tolerance: float = 2e-5
    expected: Optional[list] = None


def codes(rng, shape, bits):
    """Numbers of few bits in a type of ONNX's."""
    kind = {"int4": TensorProto.INT4, "uint4": TensorProto.UINT4}.get(bits)
    low, high = {"int4": (-8, 8), "uint4": (0, 16)}[bits]
    values = rng.integers(low, high, shape)
    packed = (values.ravel() & 15).astype(np.uint8)
    packed = np.append(packed, np.zeros(packed.size % 2, np.uint8)).reshape(-1, 2)
    raw = (packed[:, 0] | packed[:, 1] << 4).astype(np.uint8).tobytes()
    return TensorProto(data_type=kind, dims=shape, raw_data=raw)


def floats_of_a_byte(rng, shape, kind):
    raw = rng.integers(0, 120, shape, dtype=np.uint8) | (rng.integers(0, 2, shape, dtype=np.uint8) << 7)
    if kind == TensorProto.FLOAT8E4M3FNUZ or kind == TensorProto.FLOAT8E5M2FNUZ:
        raw[raw == 128] = 0  # no number
    return TensorProto(data_type=kind, dims=shape, raw_data=raw.astype(np.uint8).tobytes())


def floats(rng, *shape, dtype=F32):
    return rng.standard_normal(shape).astype(dtype)


def size(rng, most=7, least=1):
    return int(rng.integers(least, most + 1))


def maybe(rng, value):
    return value if rng.random() < 0.5 else None


def known(rng, value):
    """The value as an initializer, or as an input."""
    return Const(value) if rng.random() < 0.5 else value


def pick(rng, *choices):
    return choices[int(rng.integers(len(choices)))]


def pack(values, bits):
    """Numbers along the last dimension in bytes, from the lowest bits on."""
    per = 8 // bits
    short = -values.shape[-1] % per
    values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, short)])
    parts = values.reshape(*values.shape[:-1], -1, per).astype(np.uint8)
    return np.bitwise_or.reduce(parts << (np.arange(per, dtype=np.uint8) * bits).astype(np.uint8), axis=-1).astype(np.uint8)


# Matrices and tables of few bits.


def matmul_n_bits(rng):
    bits, block = pick(rng, 2, 4, 4, 8), pick(rng, 16, 32)
    k, n = size(rng, 70), size(rng, 9)
    blocks = -(-k // block)
    padded = blocks * block
    numbers = rng.integers(0, 1 << bits, (n, padded))
    dtype = pick(rng, F32, F16)
    scales = floats(rng, n, blocks, dtype=dtype)
    order = pick(rng, "none", "sorted", "full", "any")
    group = np.arange(k) // block
    if order == "full":
        rng.shuffle(group)
    elif order == "any":
        group = rng.integers(0, blocks, k)
    zeros = pick(rng, None, "packed", "floats")
    values = rng.integers(0, 1 << bits, (n, blocks))
    zero_input, zero = None, np.full((n, blocks), 1 << (bits - 1))
    if zeros == "packed":
        zero_input, zero = Const(pack(values, bits)), values
    elif zeros == "floats":
        zero = (values + 0.5 * (rng.random() < 0.3)).astype(dtype)
        zero_input = Const(zero)
    a = floats(rng, *[size(rng, 3) for _ in range(size(rng, 2, 0))], size(rng, 12), k, dtype=dtype)
    matrix = (numbers[:, :k] - zero[:, group]) * scales[:, group].astype(np.float64)
    bias = floats(rng, n, dtype=dtype) if rng.random() < 0.3 else None
    exact = a.astype(np.float64) @ matrix.T + (0 if bias is None else bias)
    inputs = [a, Const(pack(numbers, bits).reshape(n, blocks, -1)), Const(scales if rng.random() < 0.5 else scales.ravel()),
              zero_input, None if order == "none" else Const(group.astype(np.int32)), bias]  # fmt: skip
    # ONNX Runtime takes g_idx with 4 bits alone, and forgets packed zero points then.
    return Case("MatMulNBits", inputs, dict(K=k, N=n, bits=bits, block_size=block),
                tolerance=1e-5 if dtype == F32 else 4e-3,
                expected=[exact.astype(dtype)])  # fmt: skip


def matmul_n_bits_of_ort(rng):
    case = matmul_n_bits(rng)
    while case.inputs[4] is not None and (case.attributes["bits"] != 4 or case.inputs[0].dtype != F32 or
                                          (case.inputs[3] is not None and case.inputs[3].value.dtype == np.uint8)):  # fmt: skip
        case = matmul_n_bits(rng)
    # Without a group index ONNX Runtime may multiply half floats.
    return case._replace(expected=None, tolerance=1e-4 if case.inputs[0].dtype == F32 else 2e-2)


# bitsandbytes' FP4 and NF4, as its page has them.
BNB4 = np.array([[0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4, 0, -1 / 192, -2 / 3, -1, -1 / 3, -1 / 2, -1 / 6, -1 / 4],
                 [-1, -0.6961928, -0.5250731, -0.3949175, -0.2844414, -0.1847734, -0.0910500, 0, 0.0795803, 0.1609302,
                  0.2461123, 0.3379152, 0.4407098, 0.5626170, 0.7229568, 1]])  # fmt: skip


def matmul_bnb4(rng):
    k, n, block = size(rng, 40), size(rng, 9), pick(rng, 16, 32, 64)
    turned = int(rng.integers(2))
    attributes = dict(K=k, N=n, block_size=block, quant_type=int(rng.integers(2)))
    if not turned or rng.random() < 0.5:
        attributes["transB"] = turned
    if rng.random() < 0.3:
        attributes["training_mode"] = int(rng.integers(2))
    a = floats(rng, *[size(rng, 3) for _ in range(size(rng, 2, 0))], size(rng, 5), k if turned else n)
    largest = floats(rng, -(-n * k // block))
    packed = rng.integers(0, 256, (n * k + 1) // 2, dtype=np.uint8)
    expected = None
    if not turned:  # ONNX Runtime reads the matrix the wrong way then
        numbers = np.stack([packed >> 4, packed & 15], 1).ravel()[: n * k]
        table = BNB4[attributes["quant_type"]][numbers]
        expected = [(a.astype(np.float64) @ (table * np.repeat(largest, block)[: n * k]).reshape(n, k)).astype(F32)]
    return Case("MatMulBnb4", [a, Const(packed), Const(largest)], attributes, expected=expected)


def gather_block_quantized(rng):
    kind = pick(rng, "uint8", "uint8", "uint4", "int4", "fp8", "fp8")
    block = pick(rng, 16, 32)
    rank = size(rng, 3, 2)
    shape = [size(rng, 6) for _ in range(rank)]
    dtype = pick(rng, F32, F16)
    attributes = dict(block_size=block)
    if kind == "uint8":
        bits = pick(rng, 2, 4, 8)
        gather, axis = 0, rank - 1
        shape[-1] = size(rng, 20) * (8 // bits)
        scales = shape[:-1] + [-(-shape[-1] // block)]
        data = pack(rng.integers(0, 1 << bits, shape), bits)
        zeros = maybe(rng, pack(rng.integers(0, 1 << bits, scales), bits))
        attributes["bits"] = bits
    else:
        axis, gather = int(rng.integers(rank)), int(rng.integers(rank))
        shape[axis] = size(rng, 40)
        scales = list(shape)
        scales[axis] = -(-shape[axis] // block)
        zeros = None
        if kind == "fp8":
            data = floats_of_a_byte(rng, shape, pick(rng, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2,
                                                     TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ))  # fmt: skip
            for d in range(rank):
                if d != axis and rng.random() < 0.3:
                    scales[d] = 1
            if rng.random() < 0.3:
                attributes["block_size"], scales[axis] = 0, 1
        else:
            data = codes(rng, shape, kind)
            zeros = codes(rng, scales, kind) if rng.random() < 0.5 else None
    attributes["gather_axis"], attributes["quantize_axis"] = gather - rank * int(rng.integers(2)), axis
    rows = shape[gather]
    beyond = rows + 2 if rng.random() < 0.3 else rows
    indices = rng.integers(-beyond, beyond, [size(rng, 3) for _ in range(size(rng, 2, 0))])
    indices = np.asarray(indices, pick(rng, np.int32, np.int64))
    inputs = [Const(data), known(rng, indices), Const(floats(rng, *scales, dtype=dtype)),
              None if zeros is None else Const(zeros)]  # fmt: skip
    return Case("GatherBlockQuantized", inputs, attributes, tolerance=1e-6 if dtype == F32 else 1e-3)


# Attention.


def mask_of(rng, batch, queries, keys):
    kind = pick(rng, "none", "none", "lengths", "ends", "keys", "pairs")
    lengths = rng.integers(1, keys + 1, batch)
    if kind == "none":
        return None
    if kind == "lengths":
        return lengths.astype(np.int32)
    if kind == "ends":
        return np.concatenate([lengths, rng.integers(0, lengths)]).astype(np.int32)
    shape = [batch, keys] if kind == "keys" else [batch, queries, keys]
    mask = rng.integers(0, 2, shape)
    mask[..., 0] = 1
    return mask.astype(np.int32)


def q_attention(rng):
    batch, length, heads, width, inner = size(rng, 3), size(rng, 6), size(rng, 3), size(rng, 5), size(rng, 20)
    hidden = heads * width
    past = size(rng, 4) if rng.random() < 0.4 else 0
    signed = rng.random() < 0.5
    weight = rng.integers(-128, 128, (inner, 3 * hidden)).astype(np.int8) if signed else (
        rng.integers(0, 256, (inner, 3 * hidden)).astype(np.uint8))  # fmt: skip
    columns = rng.random() < 0.5
    steps = [3 * hidden] if columns else pick(rng, [], [1])
    # Zero points of columns that differ are 0 where the weight has a sign.
    zero = rng.integers(0, 9, steps).astype(weight.dtype) if not (signed and columns) else np.zeros(steps, np.int8)
    data = rng.integers(0, 256, (batch, length, inner)).astype(np.uint8)
    attributes = dict(num_heads=heads)
    if rng.random() < 0.5:
        attributes["unidirectional"] = 1
    if rng.random() < 0.3:
        attributes["scale"] = 0.37
    if rng.random() < 0.3:
        attributes["mask_filter_value"] = -50.0
    mask = mask_of(rng, batch, length, past + length)
    inputs = [data, Const(weight), Const(floats(rng, 3 * hidden)), Const(np.array(0.01, F32)),
              Const(np.abs(floats(rng, *steps)) * F32(0.02) + F32(0.001)), mask,
              maybe(rng, Const(np.array(rng.integers(0, 256), np.uint8))), maybe(rng, Const(np.asarray(zero))),
              floats(rng, 2, batch, heads, past, width) if past else None]  # fmt: skip
    return Case("QAttention", inputs, attributes, (True, bool(past) or rng.random() < 0.5))


def decoder_masked_attention(rng):
    batch, heads, width, room = size(rng, 3), size(rng, 3), size(rng, 5), size(rng, 8, 2)
    hidden = heads * width
    attributes = dict(num_heads=heads)
    if rng.random() < 0.3:
        attributes["scale"] = 0.37
    if rng.random() < 0.3:
        attributes["mask_filter_value"] = -50.0
    bias = maybe(rng, floats(rng, 3 * hidden))
    if rng.random() < 0.35:  # cross attention
        mask = rng.integers(0, 2, (batch, room)).astype(np.int32) if rng.random() < 0.5 else None
        if mask is not None:
            mask[:, 0] = 1
        shows = rng.random() < 0.3
        if shows:
            attributes["output_qk"] = 1
        inputs = [floats(rng, batch, 1, hidden), floats(rng, batch, heads, room, width),
                  floats(rng, batch, heads, room, width), mask, None, None, None, None, None, None,
                  None if bias is None else bias]  # fmt: skip
        return Case("DecoderMaskedMultiHeadAttention", inputs, attributes, (True, False, False, shows) if shows else (True,))
    past = int(rng.integers(0, room))
    attributes["past_present_share_buffer"] = 1
    mask = rng.integers(0, 2, (batch, past + 1)).astype(np.int32) if rng.random() < 0.4 else None
    if mask is not None:
        mask[:, 0] = 1
    more = floats(rng, pick(rng, 1, batch), pick(rng, 1, heads), 1, past + 1) if rng.random() < 0.4 else None
    packed = rng.random() < 0.2
    parts = [floats(rng, batch, 1, hidden) for _ in range(3)]
    if packed:
        parts, bias = [np.concatenate(parts, 2), None, None], None
    length = np.array([past], np.int32)
    shows = rng.random() < 0.3
    if shows:
        attributes["output_qk"] = 1
    if rng.random() < 0.5 or shows:
        length = Const(length)
    beams = [None, None]
    inputs = parts + [mask, more, floats(rng, batch, heads, room, width), floats(rng, batch, heads, room, width), length,
                      *beams, bias]  # fmt: skip
    return Case("DecoderMaskedMultiHeadAttention", inputs, attributes, (True, True, True) + ((True,) if shows else ()))


# Recurrent networks.


def dynamic_quantize_lstm(rng):
    steps, batch, inner, hidden = size(rng, 4), size(rng, 3), size(rng, 9), size(rng, 6)
    direction = pick(rng, "forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    attributes = dict(hidden_size=hidden, direction=direction)
    if rng.random() < 0.2:
        attributes["input_forget"] = 1
    # ONNX Runtime does not hold the cell's value, the input of the last activation: here it is below 2.
    clips = rng.random() < 0.2
    if clips:
        attributes["clip"], steps = 2.0, min(steps, 2)
    if rng.random() < 0.2:
        attributes["activations"] = ["HardSigmoid", "Tanh", "Relu"] * ways

    signed = rng.random() < 0.5

    def bytes_of(rows):
        if signed:
            weight = rng.integers(-128, 128, (ways, rows, 4 * hidden)).astype(np.int8)
        else:
            weight = rng.integers(0, 256, (ways, rows, 4 * hidden)).astype(np.uint8)
        shape = pick(rng, [ways], [ways, 4 * hidden])
        scale = (rng.random(shape) * 0.01 + 0.002).astype(F32)
        zero = np.full(shape, 0 if weight.dtype == np.int8 else rng.integers(100, 156)).astype(weight.dtype)
        return Const(weight), Const(scale), Const(zero)

    w, r = bytes_of(inner), bytes_of(hidden)
    lengths = rng.integers(1, steps + 1, batch).astype(np.int32) if rng.random() < 0.4 else None
    state = (ways, batch, hidden)
    inputs = [floats(rng, steps, batch, inner), w[0], r[0], maybe(rng, floats(rng, ways, 8 * hidden)), lengths,
              maybe(rng, floats(rng, *state)), None if clips else maybe(rng, floats(rng, *state)),
              floats(rng, ways, 3 * hidden) if rng.random() < 0.3 else None, w[1], w[2], r[1], r[2]]  # fmt: skip
    # One step of a state's byte: ONNX Runtime's sigmoid and tanh differ in the sixth digit.
    return Case("DynamicQuantizeLSTM", inputs, attributes, (True, True, True), tolerance=2e-2)


# Experts.


def perceptrons(rng):
    tokens, experts, width, inner = size(rng, 6), size(rng, 6), size(rng, 12), size(rng, 12)
    k = size(rng, min(experts, 3))
    name = pick(rng, "relu", "gelu", "silu", "identity", "swiglu")
    attributes = dict(k=k, activation_type=name)
    if name == "swiglu":
        attributes["swiglu_fusion"] = 1
        for key, value in (("activation_alpha", 1.702), ("activation_beta", 1.0), ("swiglu_limit", 0.7)):
            if rng.random() < 0.5:
                attributes[key] = value
    if rng.random() < 0.5:
        attributes["normalize_routing_weights"] = 1
    return tokens, experts, width, inner, attributes


def ways_to_write(rng, x):
    return x if rng.random() < 0.5 or x.shape[0] % 2 else x.reshape(2, -1, x.shape[1])


def moe(rng):
    tokens, experts, width, inner, attributes = perceptrons(rng)
    first = 2 * inner if attributes["activation_type"] == "swiglu" else inner
    if inner == width or first == width:
        inner, first = inner + 13, first + 13 * first // inner
    x = ways_to_write(rng, floats(rng, tokens, width))
    rates = floats(rng, tokens, experts)
    if rng.random() < 0.3:
        rates = np.round(rates)  # equal rates
    inputs = [x, rates, known(rng, floats(rng, experts, first, width)), maybe(rng, floats(rng, experts, first)),
              known(rng, floats(rng, experts, width, inner)), maybe(rng, floats(rng, experts, width))]  # fmt: skip
    return Case("MoE", inputs, attributes, tolerance=1e-4)


def q_moe(rng):
    tokens, experts, _, _, attributes = perceptrons(rng)
    bits = pick(rng, 2, 4, 4, 8)
    block = pick(rng, 0, 16, 32)
    width, inner = (pick(rng, 32, 64), pick(rng, 96, 128)) if block or rng.random() < 0.5 else (size(rng, 6) * 4, size(rng, 6) * 4 + 24)
    first = 2 * inner if attributes["activation_type"] == "swiglu" else inner
    dtype = pick(rng, F32, F16)
    attributes["expert_weight_bits"] = bits
    if block:
        attributes["block_size"] = block
    if rng.random() < 0.3:
        attributes["weights_prepacked"] = 0
    has_zeros = rng.random() < 0.4

    def layer(outputs, inputs):
        numbers = rng.integers(0, 1 << bits, (experts, outputs, inputs))
        steps = [experts, outputs] + ([inputs // block] if block else [])
        scale = (rng.random(steps) * 0.2 / (1 << bits) + 0.01).astype(dtype)
        zeros = Const(pack(rng.integers(0, 1 << bits, steps), bits)) if has_zeros else None
        return Const(pack(numbers, bits)), Const(scale), maybe(rng, floats(rng, experts, outputs, dtype=dtype)), zeros

    one, two = layer(first, width), layer(width, inner)
    rates = floats(rng, tokens, experts, dtype=dtype)
    weights = np.abs(floats(rng, tokens, experts, dtype=dtype)) if rng.random() < 0.3 else None
    inputs = [ways_to_write(rng, floats(rng, tokens, width, dtype=dtype)), rates, *one[:3], *two[:3], None, None, None, one[3],
              two[3], None, weights]  # fmt: skip
    # With blocks ONNX Runtime rounds data to bytes, which its specification allows.
    loose = bits == 8 and block or bits == 2
    return Case("QMoE", inputs, attributes, tolerance=4e-2 if loose else 2e-4 if dtype == F32 else 4e-3)


# Arrays.


def trilu(rng):
    shape = [size(rng, 3) for _ in range(size(rng, 2, 0))] + [size(rng), size(rng)]
    x = rng.integers(-9, 9, shape).astype(pick(rng, np.int64, np.float32, np.float64))
    k = maybe(rng, Const(np.array(rng.integers(-8, 8))))
    return Case("Trilu", [x, k], {} if rng.random() < 0.3 else dict(upper=int(rng.integers(2))))


def inverse(rng):
    n = size(rng, 9)
    x = floats(rng, *[size(rng, 3) for _ in range(size(rng, 2, 0))], n, n) * 0.3 + 3 * np.eye(n)
    if rng.random() < 0.3:
        x = x[..., rng.permutation(n)]  # the pivot is not on the diagonal
    dtype = pick(rng, F32, np.float64, F16)
    return Case("Inverse", [x.astype(dtype)], tolerance={F32: 2e-4, F16: 2e-2}.get(dtype, 1e-10))


def pad(rng):
    shape = [size(rng, 5, 2) for _ in range(size(rng, 4))]
    mode = pick(rng, "constant", "reflect", "edge", None)
    low = 0 if mode in ("reflect", "edge") else -1
    pads = np.array([rng.integers(low, d) for d in shape * 2])
    pads = pads.reshape(1, -1) if rng.random() < 0.5 else pads
    value = pick(rng, None, np.array(2.5, F32), np.array([2.5], F32))
    inputs = [floats(rng, *shape), Const(pads), None if value is None else known(rng, value)]
    return Case("Pad", inputs, {} if mode is None else dict(mode=mode))


def expand_dims(rng):
    shape = [size(rng, 4) for _ in range(size(rng, 3, 0))]
    x = np.asarray(rng.integers(0, 2, shape)).astype(
        pick(rng, F32, np.float64, F16, np.int64, np.int32, np.int16, np.int8, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_))
    axis = rng.integers(-len(shape) - 1, len(shape) + 1)
    return Case("ExpandDims", [x, Const(np.array(axis, np.int32))])


def cdist(rng):
    n, dtype = size(rng, 40), pick(rng, F32, np.float64)
    a, b = floats(rng, size(rng, 20), n, dtype=dtype), floats(rng, size(rng, 20), n, dtype=dtype)
    return Case("CDist", [a, b], pick(rng, dict(metric="euclidean"), dict(metric="sqeuclidean")), tolerance=2e-5)


def ngram_repeat_block(rng):
    rows, words = size(rng, 4), size(rng, 6)
    ids = rng.integers(0, words, (rows, size(rng, 12)))
    return Case("NGramRepeatBlock", [ids, floats(rng, rows, words)], dict(ngram_size=size(rng, 5)))


# Images.


def grid_sample(rng):
    n, c, h, w = size(rng, 3), size(rng, 3), size(rng), size(rng)
    grid = (rng.uniform(-1.4, 1.4, (n, size(rng, 5), size(rng, 5), 2))).astype(F32)
    attributes = dict(mode=pick(rng, "bilinear", "nearest", "bicubic"), padding_mode=pick(rng, "zeros", "border", "reflection"))
    if rng.random() < 0.5:
        attributes["align_corners"] = int(rng.integers(2))
    if rng.random() < 0.2:
        attributes = {}
    return Case("GridSample", [floats(rng, n, c, h, w), grid], attributes, tolerance=1e-4)


def crop_and_resize(rng):
    n, c, h, w, boxes = size(rng, 3), size(rng, 3), size(rng, 9), size(rng, 9), size(rng, 5)
    mode = pick(rng, "bilinear", "nearest", None)
    corners = rng.uniform(-0.2, 1.2, (boxes, 4)) if rng.random() < 0.5 else rng.uniform(0, 1, (boxes, 4))
    if rng.random() < 0.2:
        corners = np.round(corners)
    attributes = {} if mode is None else dict(mode=mode)
    if rng.random() < 0.5:
        attributes["extrapolation_value"] = 7.5
    inputs = [floats(rng, n, c, h, w), corners.astype(F32), known(rng, rng.integers(0, n, boxes).astype(np.int32)),
              Const(np.array([size(rng, 5), size(rng, 5)], np.int32))]  # fmt: skip
    return Case("CropAndResize", inputs, attributes, tolerance=1e-4)


def nhwc_max_pool(rng):
    dims = size(rng, 3)
    spatial = [size(rng, 9, 4) for _ in range(dims)]
    dtype = pick(rng, np.int8, np.uint8)
    of = np.iinfo(dtype)
    x = rng.integers(of.min, of.max + 1, (size(rng, 2), *spatial, size(rng, 20))).astype(dtype)
    kernel = [size(rng, 3) for _ in range(dims)]
    attributes = dict(kernel_shape=kernel)
    if rng.random() < 0.6:
        attributes["strides"] = [size(rng, 3) for _ in range(dims)]
    if rng.random() < 0.3:
        attributes["dilations"] = [size(rng, 2) if 1 < kernel[d] < spatial[d] / 2 else 1 for d in range(dims)]
    padding = pick(rng, "pads", "auto", "none")
    if padding == "pads":
        attributes["pads"] = [int(rng.integers(0, kernel[d % dims])) for d in range(2 * dims)]
    elif padding == "auto" and "dilations" not in attributes:
        # With strides beyond the kernel ONNX Runtime pads less than nothing.
        attributes["strides"] = [size(rng, k) for k in kernel]
        attributes["auto_pad"] = pick(rng, "SAME_UPPER", "SAME_LOWER", "VALID")
    if rng.random() < 0.3 and padding != "auto":
        attributes["ceil_mode"] = 1
    return Case("NhwcMaxPool", [x], attributes)


def qlinear_where(rng):
    dtype = pick(rng, np.uint8, np.int8)
    of = np.iinfo(dtype)
    shape = [size(rng, 5) for _ in range(size(rng, 3))]

    def part():
        some = [1 if rng.random() < 0.3 else d for d in shape][int(rng.integers(0, len(shape))):]
        return rng.integers(of.min, of.max + 1, some).astype(dtype)

    def steps():
        return [Const(np.array(rng.random() * 0.1 + 0.01, F32)), Const(np.array(rng.integers(of.min, of.max), dtype))]

    z = steps()
    inputs = [rng.integers(0, 2, shape).astype(bool), part(), *(z if rng.random() < 0.3 else steps()), part(), *steps(), *z]
    return Case("QLinearWhere", inputs)


DRAWS = [matmul_n_bits, matmul_n_bits_of_ort, matmul_bnb4, gather_block_quantized, q_attention, decoder_masked_attention,
         dynamic_quantize_lstm, moe, q_moe, trilu, inverse, pad, expand_dims, cdist, ngram_repeat_block, grid_sample,
         crop_and_resize, nhwc_max_pool, qlinear_where]  # fmt: skip


def model_of(cases):
    """The nodes of cases by number: inputs "3_x0", outputs "3_y0"."""
    nodes, values, constants, outputs, feeds = [], [], [], [], {}
    for number, case in cases.items():
        names = []
        for i, given in enumerate(case.inputs):
            name = f"n{number}_x{i}"
            names.append("" if given is None else name)
            if given is None:
                continue
            value = given.value if isinstance(given, Const) else np.asarray(given)
            if isinstance(value, TensorProto):
                constants.append(TensorProto.FromString(value.SerializeToString()))
                constants[-1].name = name
            elif isinstance(given, Const):
                constants.append(numpy_helper.from_array(np.asarray(value), name))
            else:
                kind = helper.np_dtype_to_tensor_dtype(value.dtype)
                values.append(helper.make_tensor_value_info(name, kind, value.shape))
                feeds[name] = value
        while names and not names[-1]:
            names.pop()
        made = [f"n{number}_y{i}" if wanted else "" for i, wanted in enumerate(case.outputs)]
        nodes.append(helper.make_node(case.op, names, made, name=f"n{number}", domain="com.microsoft", **case.attributes))
        # ONNX Runtime infers half floats for output 3, whatever the others are.
        outputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) if name.endswith("y3")
                    else onnx.ValueInfoProto(name=name) for name in made if name]  # fmt: skip
    graph = helper.make_graph(nodes, "cases", values, outputs, constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


def of_onnxruntime(case):
    """The case's outputs by name; an error's text where ONNX Runtime refuses it."""
    model, feeds = model_of({0: case})
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, feeds)
    except Exception as error:  # pylint: disable=broad-except
        return str(error)


def differs(found, expected, tolerance):
    """In words; "" where nothing does."""
    expected = np.asarray(expected)
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"{found.dtype} {found.shape}, expected {expected.dtype} {expected.shape}"
    if not np.issubdtype(expected.dtype, np.floating):
        wrong = found != expected
    else:
        a, b = found.astype(np.float64), expected.astype(np.float64)
        finite = np.isfinite(b)
        largest = np.abs(b[finite]).max(initial=0)
        with np.errstate(invalid="ignore"):
            near = np.abs(a - b) <= tolerance * largest + 1e-30
        wrong = ~np.where(finite, near, (a == b) | (np.isnan(a) & np.isnan(b)))
    if not wrong.any():
        return ""
    first = tuple(np.argwhere(wrong)[0])
    return f"{wrong.sum()} of {wrong.size}: {found[first]} at {list(map(int, first))}, expected {expected[first]}"


def words_of(case):
    def short(given):
        value = given.value if isinstance(given, Const) else given
        if value is None:
            return "-"
        mark = "=" if isinstance(given, Const) else ""
        if isinstance(value, TensorProto):
            return f"{mark}{TensorProto.DataType.Name(value.data_type)}{list(value.dims)}"
        return f"{mark}{np.asarray(value).dtype}{list(np.asarray(value).shape)}"

    return f"{case.op} {case.attributes} ({', '.join(map(short, case.inputs))})"


class OrtOperators(unittest.TestCase):
    refused = 0
    compared = 0

    def run_cases(self, cases, expected):
        """What differs, by case, in words."""
        model, feeds = model_of(cases)
        try:
            module = pruner.compile(model)
        except PrunerError as error:
            if len(cases) > 1:  # one at a time: which is it?
                return {n: words for n in cases for words in self.run_cases({n: cases[n]}, expected).values()}
            return {n: str(error) for n in cases}
        found = dict(zip([output.name for output in module.outputs],
                         module(*[feeds[tensor.name] for tensor in module.inputs])))  # fmt: skip
        wrong = {}
        for number, case in cases.items():
            names = [f"n{number}_y{i}" for i, wanted in enumerate(case.outputs) if wanted]
            words = [differs(np.asarray(found[name]), value, case.tolerance)
                     for name, value in zip(names, expected[number])]  # fmt: skip
            if any(words):
                wrong[number] = "; ".join(filter(None, words))
        return wrong

    def check(self, draw):
        rng = np.random.default_rng([SEED, DRAWS.index(draw)])
        failures, refused, compared = [], {}, 0
        for _ in range(ROUNDS):
            drawn = {n: draw(rng) for n in range(CASES)}
            expected = {n: case.expected or of_onnxruntime(case) for n, case in drawn.items()}
            for n, words in list(expected.items()):
                if isinstance(words, str):
                    refused.setdefault(words[-160:], words_of(drawn.pop(n)))
            if not drawn:
                continue
            compared += len(drawn)
            failures += [f"{words_of(drawn[n])}: {words}" for n, words in self.run_cases(drawn, expected).items()]
        print(f"{draw.__name__}: {compared} compared, {ROUNDS * CASES - compared} refused by ONNX Runtime", file=sys.stderr)
        if os.environ.get("PRUNER_SHOW_REFUSED"):
            print("\n".join(f"  {case}: {words}" for words, case in refused.items()), file=sys.stderr)
        self.assertFalse(failures, f"{len(failures)} of {compared}:\n" + "\n".join(failures[:8]))
        self.assertGreater(compared, 0)


def add_tests():
    chosen = os.environ.get("ORT_OPERATORS", "").split()
    for draw in DRAWS:
        name = draw.__name__
        if not chosen or name in chosen:
            setattr(OrtOperators, f"test_{name}", lambda self, draw=draw: self.check(draw))


add_tests()

if __name__ == "__main__":
    unittest.main()
