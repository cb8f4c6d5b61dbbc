"""Defines the operators of `cpu_peers.py operators`: the spelling of each in this project, ONNX and
torch, its cost, and the number that it has to reach."""
import dataclasses

import numpy as np
import onnx
from onnx import helper, numpy_helper

Node = tuple  # (ONNX operator, names of inputs, attributes); its output is "t" of the next node


@dataclasses.dataclass(frozen=True)
class Operator:
    text: str  # spelling of `pruner ops`
    # Numbers to reach: "peak" and "bandwidth" in percent, "peer" as the largest ratio to the best
    # peer, "winograd" as the least speedup over the direct form.
    bars: dict
    inputs: dict  # ONNX inputs and their shapes; images are NCHW
    output: list
    nodes: list[Node]
    torch: list[str]  # expressions of inputs, weights and `packed`; the quickest counts
    weights: dict = dataclasses.field(default_factory=dict)
    packed: str = ""  # torch's expression for a weight that is packed beforehand
    flops: int = 0  # floating-point operations; 0: arithmetic does not matter
    bytes: int = 0  # least bytes to read and write, if the bar is the bandwidth
    forms: bool = False  # whether the direct form is also measured (3x3 convolutions of stride 1)


PEER = {"peer": 1.03}


def matmul(m, n, k, bars):
    return Operator(f"matmul {m} {n} {k}", bars, {"x": [m, k], "y": [k, n]}, [m, n],
                    [("MatMul", "x y", {})], ["torch.mm(x, y)"],
                    flops=2 * m * n * k, bytes=4 * (m * k + k * n + m * n))


def dense(m, n, k, bars):
    return Operator(f"dense {m} {n} {k}", bars, {"x": [m, k]}, [m, n],
                    [("Gemm", "x w", {"transB": 1})],
                    ["torch.ops.aten.linear(x, w)",
                     "torch.ops.mkldnn._linear_pointwise(x, packed, None, 'none', [], '')"],
                    {"w": [n, k]}, f"torch.ops.mkldnn._reorder_linear_weight(w, {m})",
                    flops=2 * m * n * k, bytes=4 * (m * k + k * n + m * n))


def batch_matmul(b, m, n, k, bars):
    return Operator(f"batch_matmul {b} {m} {n} {k}", bars, {"x": [b, m, k], "y": [b, k, n]}, [b, m, n],
                    [("MatMul", "x y", {})], ["torch.bmm(x, y)"], flops=2 * b * m * n * k)


def conv(ci, size, co, kernel, bars, stride=1, groups=1, bias_relu=False):
    """Returns a square convolution of `size` x `size` inputs, padded so that stride 1 keeps the
    size."""
    out, padding = size // stride, kernel // 2
    depthwise = groups > 1
    text = (f"depthwise_conv2d 1 {ci} {out} {out} {kernel} {kernel}" if depthwise else
            f"conv2d 1 {co} {out} {out} {ci} {kernel} {kernel}")
    text += (f" stride={stride}" if stride > 1 else "") + (f" padding={padding}" if padding else "")
    text += " +bias +relu" if bias_relu else ""
    weights = {"w": [co, ci // groups, kernel, kernel], **({"b": [co]} if bias_relu else {})}
    bias, unary = ("b", "relu") if bias_relu else ("None", "none")
    window = f"[{padding}, {padding}], [{stride}, {stride}], [1, 1], {groups}"
    eager = f"torch.conv2d(x, w, {bias}, [{stride}, {stride}], [{padding}, {padding}], [1, 1], {groups})"
    return Operator(
        text, bars, {"x": [1, ci, size, size]}, [1, co, out, out],
        [("Conv", " ".join(["x", *weights]), {"pads": [padding] * 4, "strides": [stride] * 2,
                                              "kernel_shape": [kernel] * 2, "group": groups}),
         *([("Relu", "t", {})] if bias_relu else [])],
        [f"torch.relu({eager})" if bias_relu else eager,
         f"torch.ops.mkldnn._convolution_pointwise(x, packed, {bias}, {window}, '{unary}', [], '')"],
        weights,
        f"torch.ops.mkldnn._reorder_convolution_weight(w, {window}, {[1, ci, size, size]})",
        flops=2 * out * out * co * ci // groups * kernel**2,
        forms=kernel == 3 and stride == 1 and not depthwise)


def pool(kind, channels, size, kernel, padding, bars, stride=2):
    out = size // stride
    onnx_op = {"max": "MaxPool", "avg": "AveragePool"}[kind]
    window = f"[{kernel}, {kernel}], [{stride}, {stride}], [{padding}, {padding}]"
    text = f"{kind}_pool2d 1 {channels} {out} {out} {kernel} {kernel} stride={stride}"
    return Operator(text + (f" padding={padding}" if padding else ""), bars,
                    {"x": [1, channels, size, size]}, [1, channels, out, out],
                    [(onnx_op, "x", {"kernel_shape": [kernel] * 2, "strides": [stride] * 2,
                                     "pads": [padding] * 4})],
                    [f"torch.ops.aten.{kind}_pool2d(x, {window})"])


def global_pool(channels, size, bars):
    return Operator(f"avg_pool2d 1 {channels} 1 1 {size} {size}", bars,
                    {"x": [1, channels, size, size]}, [1, channels, 1, 1],
                    [("GlobalAveragePool", "x", {})],
                    ["torch.ops.aten.adaptive_avg_pool2d(x, [1, 1])", "torch.mean(x, [2, 3], True)"])


def rowwise(name, onnx_op, expression, shape, bars, inputs=("x",), weights=None, **attributes):
    """Returns an operator whose output has the shape of its inputs."""
    weights = weights or {}
    return Operator(" ".join(map(str, [name, *shape])), bars, {x: shape for x in inputs}, shape,
                    [(onnx_op, " ".join([*inputs, *weights]), attributes)], [expression], weights)


def attention(heads, length, width, bars, sharing=1, causal=False):
    shape, keys = [1, heads, length, width], [1, heads // sharing, length, width]
    text = f"attention 1 {heads} {length} {length} {width}"
    text += (f" sharing={sharing}" if sharing > 1 else "") + (" causal=1" if causal else "")
    products = 4 * heads * length**2 * width
    return Operator(text, bars, {"x": shape, "k": keys, "v": keys}, shape,
                    [("Attention", "x k v", {"is_causal": int(causal)})],
                    [f"torch.nn.functional.scaled_dot_product_attention(x, k, v, is_causal={causal}, "
                     f"enable_gqa={sharing > 1})"], flops=products)


def gated(m, n, k, bars):
    """Returns the gate of a gated MLP: silu(x w) y; y is the other product."""
    linear = "torch.ops.aten.linear(x, w)"
    return Operator(f"dense {m} {n} {k} +silu +gate", bars, {"x": [m, k], "y": [m, n]}, [m, n],
                    [("Gemm", "x w", {"transB": 1}), ("Sigmoid", "t", {}), ("Mul", "t t_Gemm", {}),
                     ("Mul", "t y", {})],
                    [f"torch.nn.functional.silu({linear}) * y"], {"w": [n, k]},
                    flops=2 * m * n * k, bytes=4 * (m * k + k * n + 2 * m * n))


OPERATORS = [
    matmul(512, 512, 512, {"peak": 92}),
    matmul(1024, 1024, 1024, {"peak": 92}),
    dense(512, 512, 512, {"peak": 92}),
    conv(64, 56, 64, 3, {"peak": 92, "winograd": 1.3}, bias_relu=True),
    conv(256, 14, 256, 3, {"peak": 92}),
    conv(256, 56, 64, 1, {"peak": 75}),
    conv(3, 224, 64, 7, {"peak": 85}, stride=2),
    conv(128, 28, 128, 3, {"winograd": 1.3}),
    conv(32, 112, 32, 3, PEER, groups=32),
    conv(144, 56, 144, 5, PEER, stride=2, groups=144),
    batch_matmul(12, 128, 128, 64, PEER),
    rowwise("softmax", "Softmax", "torch.softmax(x, 2)", [12, 128, 128], PEER, axis=-1),
    rowwise("layernorm", "LayerNormalization", "torch.layer_norm(x, [768], w, b)", [128, 768], PEER,
            weights={"w": [768], "b": [768]}),
    rowwise("gelu", "Gelu", "torch.ops.aten.gelu(x)", [128, 3072], PEER),
    pool("max", 64, 112, 3, 1, PEER),
    pool("avg", 64, 112, 2, 0, PEER),
    global_pool(2048, 7, PEER),
    rowwise("add", "Add", "torch.add(x, y)", [1, 256, 56, 56], PEER, inputs=("x", "y")),
    matmul(49, 1000, 960, {"peak": 70}),
    conv(37, 19, 53, 3, {"peak": 70}),
    matmul(1, 4096, 4096, {"bandwidth": 90}),
    dense(1, 4096, 4096, {"bandwidth": 90}),
    attention(12, 128, 64, {"peer": 0.8}),
    attention(12, 512, 64, {"peer": 0.8}),
    # `pruner ops` names these operators, with their sources: llama_3_8b_attention,
    # deepseek_r1_expert, flux_attention, flux_convolution, llama_4_mlp.
    attention(32, 2048, 128, {"peer": 0.8}, sharing=4, causal=True),
    gated(16, 2048, 7168, {"bandwidth": 90}),
    attention(24, 4608, 128, {"peer": 0.8}),
    conv(512, 128, 512, 3, {"winograd": 1.3}),
    gated(128, 8192, 5120, {"peak": 92}),
]


def arrays(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def write_onnx(operator, path):
    nodes = [helper.make_node(kind, names.split(), ["t"], **attributes)
             for kind, names, attributes in operator.nodes]
    for before, node in zip(nodes, nodes[1:]):
        before.output[0] = node.input[0] = f"t_{before.op_type}"
    graph = helper.make_graph(
        nodes, "operator",
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
         for name, shape in operator.inputs.items()],
        [helper.make_tensor_value_info("t", onnx.TensorProto.FLOAT, operator.output)],
        [numpy_helper.from_array(array, name) for name, array in arrays(operator.weights, 1).items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
