"""Small files in the formats of TenSet and MetaSchedule, written as TVM writes them.

    tvm_samples.py FOLDER      writes a sample of either into FOLDER/tenset and FOLDER/metaschedule

The pickles are written by Python's own `pickle` from stand-ins for TVM's classes, under the names of
TVM's modules. Their bytes therefore have the structure of TenSet's files. The times are made up.
"""

import base64
import json
import os
import pickle
import struct
import sys
import types


class Nodes:
    """A graph of TVM's nodes in JSON. `add` returns the number of the node."""

    def __init__(self):
        self.nodes = [{"type_key": ""}]

    def add(self, kind, data=None, keys=None, /, **attributes):
        node = {"type_key": kind}
        if attributes:
            node["attrs"] = {key: str(value) for key, value in attributes.items()}
        if data is not None:
            node["data"] = data
        if keys is not None:
            node["keys"] = keys
        self.nodes.append(node)
        return len(self.nodes) - 1

    def text(self, value):
        self.nodes.append({"type_key": "runtime.String", **({"repr_str": value} if value else {})})
        return len(self.nodes) - 1

    def array(self, *items):
        return self.add("Array", list(items) or None)

    def integer(self, value, dtype="int32"):
        return self.add("IntImm", dtype=dtype, span=0, value=value)

    def real(self, value):
        return self.add("FloatImm", dtype="float32", span=0, value=value)

    def shape(self, *extents):
        return self.array(*map(self.integer, extents))

    def variable(self, name, dtype="int32"):
        return self.add("tir.Var", dtype=dtype, name=self.text(name), span=0, type_annotation=0)

    def axis(self, name, extent, kind):
        variable = self.variable(name)
        span = self.add("Range", extent=self.integer(extent), min=self.integer(0), span=0)
        whole = self.add("tir.IterVar", dom=span, iter_type=kind, span=0, thread_tag=self.text(""), var=variable)
        return variable, whole

    def binary(self, kind, a, b, dtype="float32"):
        return self.add("tir." + kind, a=a, b=b, dtype=dtype, span=0)

    def graph(self, root):
        document = {"root": root, "nodes": self.nodes, "b64ndarrays": [], "attrs": {"tvm_version": "0.8.dev0"}}
        return json.dumps(document, indent=2)


def te_dense(m, n, k, relu=False):
    """Returns the tensors of a dense layer of te.compute, as TVM's graph."""
    nodes = Nodes()

    def tensor(op, *extents):
        return nodes.add("Tensor", dtype="float32", op=op, shape=nodes.shape(*extents), value_index=0)

    def placeholder(*extents):
        op = nodes.add("PlaceholderOp", attrs=nodes.add("Map"), dtype="float32", name="placeholder",
                       shape=nodes.shape(*extents), tag="")  # fmt: skip
        return tensor(op, *extents)

    def read(source, *indices):
        return nodes.add("tir.ProducerLoad", dtype="float32", indices=nodes.array(*indices), producer=source, span=0)

    a, b = placeholder(m, k), placeholder(n, k)
    (i, i_axis), (j, j_axis), (r, r_axis) = nodes.axis("i", m, 0), nodes.axis("j", n, 0), nodes.axis("k", k, 2)
    x, y = nodes.variable("x", "float32"), nodes.variable("y", "float32")
    combiner = nodes.add("tir.CommReducer", identity_element=nodes.array(nodes.real(0)), lhs=nodes.array(x),
                         rhs=nodes.array(y), result=nodes.array(nodes.binary("Add", x, y)), span=0)  # fmt: skip
    product = nodes.binary("Mul", read(a, i, r), read(b, j, r))
    total = nodes.add("tir.Reduce", axis=nodes.array(r_axis), combiner=combiner, condition=nodes.integer(1, "bool"),
                      dtype="float32", init=nodes.array(), source=nodes.array(product), span=0,
                      value_index=0)  # fmt: skip
    layout = nodes.add("Map", [nodes.array(b)], ["layout_free_placeholders"])
    dense = nodes.add("ComputeOp", attrs=layout, axis=nodes.array(i_axis, j_axis), body=nodes.array(total),
                      name="T_dense", reduce_axis=nodes.array(r_axis), tag="dense")  # fmt: skip
    result = tensor(dense, m, n)
    if relu:
        (i, i_axis), (j, j_axis) = nodes.axis("ax0", m, 0), nodes.axis("ax1", n, 0)
        body = nodes.binary("Max", read(result, i, j), nodes.real(0))
        op = nodes.add("ComputeOp", attrs=nodes.add("Map"), axis=nodes.array(i_axis, j_axis), body=nodes.array(body),
                       name="T_relu", reduce_axis=nodes.array(), tag="elemwise")  # fmt: skip
        result = tensor(op, m, n)
    return nodes.graph(nodes.array(a, b, result))


def target_graph():
    nodes = Nodes()
    cpu = nodes.text("cpu")
    kind = nodes.add("TargetKind", default_keys=nodes.array(cpu), device_type=1, name=nodes.text("llvm"))
    attributes = nodes.add("Map", [nodes.text("core-avx2"), nodes.text("e5-2673")], ["mcpu", "model"])
    keys = nodes.array(cpu)
    return nodes.graph(nodes.add("Target", attrs=attributes, host=0, keys=keys, kind=kind, tag=nodes.text("")))


def _stand_ins():
    """Returns stand-ins for the modules and classes of TVM that a pickle of tasks names."""

    def module(name, **content):
        made = types.ModuleType(name)
        for key, value in content.items():
            value.__module__, value.__qualname__ = name, key
            setattr(made, key, value)
        return made

    def _new_object(cls):
        return cls.__new__(cls)

    class Object:
        def __reduce__(self):
            return _new_object, (type(self),), self.__getstate__()

        def __getstate__(self):
            return self.state

    class SearchTask(Object):
        pass

    class ComputeDAG(Object):
        pass

    class Target(Object):
        pass

    class String(str):
        pass

    named = {
        "tvm": {}, "tvm.runtime": {}, "tvm.auto_scheduler": {}, "tvm.target": {},
        "tvm.runtime.object": {"_new_object": _new_object, "Object": Object},
        "tvm.runtime.container": {"String": String},
        "tvm.auto_scheduler.search_task": {"SearchTask": SearchTask},
        "tvm.auto_scheduler.compute_dag": {"ComputeDAG": ComputeDAG},
        "tvm.target.target": {"Target": Target},
    }  # fmt: skip
    return {name: module(name, **content) for name, content in named.items()}


def task_pickle(tasks, weights=None, protocol=None):
    """Returns the bytes of NETWORK.task.pkl, or of all_tasks.pkl without weights. A task is a key
    and the graph of its tensors."""
    stand_ins = _stand_ins()

    def make(module, name, state):
        made = getattr(stand_ins[module], name).__new__(getattr(stand_ins[module], name))
        made.state = state
        return made

    def string(text):
        made = stand_ins["tvm.runtime.container"].String(text)
        made.__tvm_object__ = make("tvm.runtime.object", "Object", {"handle": "{}"})
        return made

    def task(key, tensors):
        return make("tvm.auto_scheduler.search_task", "SearchTask", {
            "compute_dag": make("tvm.auto_scheduler.compute_dag", "ComputeDAG", {"tensors": tensors}),
            "workload_key": string(key),
            "target": make("tvm.target.target", "Target", {"handle": target_graph()}),
            "target_host": None,
            "hardware_params": make("tvm.runtime.object", "Object", {"handle": "{}"}),
            "layout_rewrite_option": 2,
            "task_input_names": [],
        })  # fmt: skip

    made = [task(key, tensors) for key, tensors in tasks]
    before = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    try:
        return pickle.dumps(made if weights is None else (made, weights), protocol)
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def dense_key(digit, m, n, k):
    return json.dumps([digit * 32, m, k, n, k, m, n])


def dense_records(key, m, n, k, count):
    """Yields lines of records as Ansor writes them, of tiled dense layers without an epilogue. The
    times are made up: they fall with the width of the innermost loop and with the unrolling."""
    tiles = [(a, b, c) for a in (1, 2, 4) for b in (2, 4) for c in (1, 2, 4)]
    made = 0
    for inner in (2, 4, 8, 16):
        for unroll in (0, 16, 64, 512):
            for a, b, c in tiles:
                if made == count:
                    return
                made += 1
                steps = [
                    ["SP", 2, 0, m, [a, 1, c], 1], ["SP", 2, 4, n, [1, b, inner], 1], ["SP", 2, 8, k, [4], 1],
                    ["RE", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]], ["FU", 2, [0, 1, 2, 3]], ["AN", 2, 0, 3],
                    ["PR", 2, 0, f"auto_unroll_max_step${unroll}"], ["AN", 2, 6, 2],
                ]  # fmt: skip
                time = m * n * k * 1e-9 / inner * (1 + 0.1 / (1 + unroll)) * (1 + 0.01 * a + 0.003 * b + 0.02 / c)
                target = "llvm -keys=cpu -mcpu=core-avx2 -model=e5-2673"
                task = [key, target, [8, 32, 64, 0, 0, 0, 0, 0], "", 2, []]
                result = [[time, time * 1.01], 0, 0.4, 1630000000 + made]
                yield json.dumps({"i": [task, [[], steps]], "r": result, "v": "v0.6"})


def write(folder, name, content):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb" if isinstance(content, bytes) else "w") as file:
        file.write(content)
    return path


def tir_matmul(m, n, k, scheduled=False):
    """Returns the graph of an IRModule with an unscheduled matmul and a relu."""
    nodes = Nodes()

    def buffer(name, *extents):
        return nodes.add("tir.Buffer", buffer_type=1, data=nodes.variable(name, "handle"), data_alignment=64,
                         dtype="float32", elem_offset=nodes.integer(0), name=nodes.text(name), offset_factor=1,
                         shape=nodes.shape(*extents), span=0, strides=nodes.array())  # fmt: skip

    def read(source, *indices):
        return nodes.add("tir.BufferLoad", buffer=source, dtype="float32", indices=nodes.array(*indices), span=0)

    def store(target, value, *indices):
        return nodes.add("tir.BufferStore", buffer=target, indices=nodes.array(*indices), span=0, value=value)

    def nest(name, axes, body, init=0):
        """Returns loops around a block; an axis is (loop's extent, iterator of the block)."""
        loops = [nodes.variable(f"{name}_{at}") for at in range(len(axes))]
        block = nodes.add("tir.Block", alloc_buffers=nodes.array(), annotations=nodes.add("Map"), body=body, init=init,
                          iter_vars=nodes.array(*[axis for _, axis in axes]), match_buffers=nodes.array(),
                          name_hint=nodes.text(name), reads=nodes.array(), span=0, writes=nodes.array())  # fmt: skip
        realized = nodes.add("tir.BlockRealize", block=block, iter_values=nodes.array(*loops),
                             predicate=nodes.integer(1, "bool"), span=0)  # fmt: skip
        for loop, (extent, _) in zip(reversed(loops), reversed(axes)):
            realized = nodes.add("tir.For", annotations=nodes.add("Map"), body=realized, extent=nodes.integer(extent),
                                 kind=1 if scheduled else 0, loop_var=loop, min=nodes.integer(0), span=0,
                                 thread_binding=0)  # fmt: skip
        return realized

    a, b, c, d = buffer("A", m, k), buffer("B", k, n), buffer("C", m, n), buffer("D", m, n)
    (i, i_axis), (j, j_axis), (r, r_axis) = nodes.axis("vi", m, 0), nodes.axis("vj", n, 0), nodes.axis("vk", k, 2)
    value = nodes.binary("Add", read(c, i, j), nodes.binary("Mul", read(a, i, r), read(b, r, j)))
    first = nest("C", [(m, i_axis), (n, j_axis), (k, r_axis)], store(c, value, i, j), store(c, nodes.real(0), i, j))
    (i, i_axis), (j, j_axis) = nodes.axis("ax0", m, 0), nodes.axis("ax1", n, 0)
    second = nest("D", [(m, i_axis), (n, j_axis)], store(d, nodes.binary("Max", read(c, i, j), nodes.real(0)), i, j))
    root = nest("root", [], nodes.add("tir.SeqStmt", seq=nodes.array(first, second), span=0))
    handles = [nodes.variable(name, "handle") for name in ("a", "b", "d")]
    buffers = nodes.add("Map", [each for pair in zip(handles, (a, b, d)) for each in pair])
    function = nodes.add("tir.PrimFunc", _checked_type_=0, attrs=0, body=root, buffer_map=buffers,
                         params=nodes.array(*handles), ret_type=0, span=0)  # fmt: skip
    name = nodes.add("GlobalVar", _checked_type_=0, name_hint=nodes.text("main"), span=0)
    return nodes.graph(nodes.add("IRModule", attrs=0, functions=nodes.add("Map", [name, function]),
                                 global_type_var_map_=nodes.add("Map"), global_var_map_=nodes.add("Map"),
                                 source_map=0, type_definitions=nodes.add("Map")))  # fmt: skip


def metaschedule_lines(modules, records):
    """Returns the lines of both files of a database. A record is (workload, times)."""
    packed = [struct.pack("<Q", len(graph)) + graph.encode() for graph in modules]
    workloads = [json.dumps([str(1000 + at), base64.b64encode(each).decode()]) for at, each in enumerate(packed)]
    arguments = [["TENSOR", "float32", [32, 16]], ["TENSOR", "float32", [16, 24]], ["TENSOR", "float32", [32, 24]]]
    target = {"kind": "llvm", "keys": ["cpu"], "mcpu": "skylake-avx512", "num-cores": 4, "tag": ""}
    trace = [[["GetBlock", [], ["C", "main"], ["b0"]], ["GetLoops", ["b0"], [], ["l1", "l2", "l3"]],
              ["SamplePerfectTile", ["l1"], [4, 64], ["v4", "v5", "v6", "v7"]]], [[2, [4, 2, 2, 2]]]]  # fmt: skip
    tuned = [json.dumps([workload, [trace, times, target, arguments]]) for workload, times in records]
    return "\n".join(workloads) + "\n", "\n".join(tuned) + "\n"


# Four dense layers by name: rows, columns, and the extent that is summed. resnet_18 has the first
# two, resnet_50 the last three.
DENSE = {digit: (32, 64 * (at + 1), 64) for at, digit in enumerate("abcd")}
RESNET_18, RESNET_50 = "((resnet_18,[(1,3,224,224)]),llvm).task.pkl", "((resnet_50,[(1,3,224,224)]),llvm).task.pkl"


def write_tenset_tasks(folder):
    """Writes network_info: two networks, and the list of all tasks."""
    tasks = {digit: (dense_key(digit, *size), te_dense(*size)) for digit, size in DENSE.items()}
    for name, digits, weights in ((RESNET_18, "ab", [3, 1]), (RESNET_50, "bcd", [2, 4, 1])):
        write(folder, f"network_info/{name}", task_pickle([tasks[digit] for digit in digits], weights))
    write(folder, "network_info/all_tasks.pkl", task_pickle(list(tasks.values())))


def write_tenset_records(folder, digits="abcd", count=60):
    """Writes measure_records: a file for each task. Tasks of other names than DENSE's are unknown."""
    for digit in digits:
        size = DENSE.get(digit, DENSE["a"])
        lines = dense_records(dense_key(digit, *size), *size, count)
        write(folder, f"measure_records/e5-2673/([{digit}],llvm).json", "\n".join(lines) + "\n")


def write_metaschedule(folder, modules, records):
    for name, lines in zip(("workload", "tuning_record"), metaschedule_lines(modules, records)):
        write(folder, f"database_{name}.json", lines)


if __name__ == "__main__":
    write_tenset_tasks(os.path.join(sys.argv[1], "tenset"))
    write_tenset_records(os.path.join(sys.argv[1], "tenset"))
    both = [tir_matmul(32, 24, 16), tir_matmul(32, 24, 16, scheduled=True)]
    tuned = [(0, [3.1e-6, 3.3e-6]), (0, [1e10]), (0, [2.4e-6, 2.6e-6]), (1, [5e-6, 5.2e-6])]
    write_metaschedule(os.path.join(sys.argv[1], "metaschedule"), both, tuned)
