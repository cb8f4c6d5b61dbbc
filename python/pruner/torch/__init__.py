"""torch.compile(model, backend="pruner"), and export() of a model to a module.

    fast = torch.compile(model.eval(), backend="pruner")
    with torch.inference_mode():
        fast(x)                                            # compiles, in seconds
    torch.compile(model, backend="pruner", options={"budget": "3m"})  # and tunes while it runs

What Pruner has no form for stays in eager, and so does training. Options: pruner.torch.Options.
"""

import logging
import os
import tempfile
from dataclasses import fields
from typing import Dict, List, Optional, Sequence

import torch

from pruner import _program
from pruner.torch.dynamic import ByRange, ranges_of
from pruner.torch.importer import decompositions, resizes_of_eager, unsupported, write_onnx
from pruner.torch.operators import operators
from pruner.torch.runtime import CompiledGraph, Options, dims_of, warn_once
from pruner.torch.verify import Watch

__all__ = ["CompiledGraph", "Options", "backend", "export", "operators"]

log = logging.getLogger("pruner.torch")

_MOST_SHAPES = 8


def backend(gm: torch.fx.GraphModule, example_inputs, *, options: Optional[dict] = None, mode=None):
    """The backend that torch.compile finds by the name "pruner"."""
    from torch._dynamo.backends.common import aot_autograd
    from functorch.compile import nop

    known = {each.name for each in fields(Options)}
    unknown = set(options or {}) - known
    if unknown:
        raise ValueError(f"options {sorted(unknown)} are unknown; there are {sorted(known)}")
    chosen = Options(**(options or {}))
    if mode not in (None, "default"):
        warn_once(f"mode {mode} is ignored; use options={{'budget': '3m'}}")
    watch = Watch(gm, chosen.verify, chosen.fallback) if chosen.verify else None

    def inference(graph_module, inputs):
        return _compiled(graph_module, inputs, chosen, watch)

    def training(graph_module, inputs):
        why = (
            "gradients are recorded, so that a graph runs in eager: call the compiled model in torch.no_grad() or"
            " torch.inference_mode()"
        )
        if not chosen.fallback:
            raise _program.PrunerError(why)
        warn_once(why)
        return nop(graph_module, inputs)

    compiler = aot_autograd(
        fw_compiler=training,
        bw_compiler=nop,
        inference_compiler=inference,
        decompositions=decompositions(),
    )
    with resizes_of_eager():
        call = compiler(gm, example_inputs)
    return call if watch is None else watch.around(call)


def _static_places() -> List[int]:
    """The places of weights among the inputs of the graph that is being compiled."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is None:
        return []
    mutated = {i for i, each in enumerate(metadata.input_info) if each.mutates_data}
    return [i for i in metadata.static_input_indices if i not in mutated]


def _compiled(gm: torch.fx.GraphModule, inputs, options: Options, watch: Optional[Watch]):
    static = _static_places()
    if watch is not None and not watch.watches(gm.graph):
        watch = None
    if any(isinstance(x, torch.SymInt) for x in inputs):
        call = _dynamic(gm, static, options, watch)
    else:
        call = _partitioned(gm, static, options, watch)

    def boxed(args):
        return call(*args)

    boxed._boxed_call = True
    return boxed


def _dynamic(gm: torch.fx.GraphModule, static: Sequence[int], options: Options, watch: Optional[Watch]):
    """A graph of symbolic shapes: modules of ranges where all of it has a form in ONNX, else modules of one shape."""
    by_shape = _ByShape(gm, static, options, watch)
    reasons = _reasons(gm.graph)
    calls = [node for node in gm.graph.nodes if node.op == "call_function"]
    if reasons or len(calls) < options.min_nodes:
        log.debug("a graph has a module for each shape: %s", "; ".join(sorted(set(reasons.values()))))
        return by_shape
    try:
        return ByRange(gm, static, options, watch, by_shape)
    except NotImplementedError as error:
        warn_once(f"a graph has a module for each shape: {error}")
        return by_shape


class _ByShape:
    """A graph of symbolic shapes: one of static shapes for each that it is called with."""

    def __init__(self, gm: torch.fx.GraphModule, static: Sequence[int], options: Options, watch: Optional[Watch]):
        self._gm, self._static, self._options, self._watch = gm, static, options, watch
        self._by_shape = {}

    def __call__(self, *args):
        key = tuple(tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in args)
        call = self._by_shape.get(key)
        if call is None and len(self._by_shape) < _MOST_SHAPES:
            call = self._by_shape[key] = self._specialized(args)
        if call is None:
            warn_once(f"after {_MOST_SHAPES} shapes, a graph stays in eager for others")
            call = self._gm
        return call(*args)

    def _specialized(self, args):
        """The graph traced again, with numbers in place of symbols."""
        from torch.fx.experimental.proxy_tensor import make_fx

        gm = make_fx(self._gm, tracing_mode="fake")(*args)
        gm.graph.eliminate_dead_code()
        gm.recompile()
        # A number is still among the arguments, though nothing reads it; only parts go without.
        whole = all(isinstance(x, torch.Tensor) for x in args)
        return _partitioned(gm, self._static, self._options, self._watch, whole)


def _elsewhere(graph: torch.fx.Graph) -> Dict[torch.fx.Node, str]:
    """The calls that read or make a tensor that a module cannot: modules run on dense tensors in the CPU's
    memory."""
    reasons = {}
    for node in graph.nodes:
        for near in [node, *node.all_input_nodes] if node.op == "call_function" else []:
            value = near.meta.get("val")
            for tensor in value if isinstance(value, (list, tuple)) else [value]:
                if not isinstance(tensor, torch.Tensor):
                    continue
                if tensor.device.type != "cpu":
                    reasons[node] = f"{node.target}: on the device {tensor.device}"
                elif tensor.layout is not torch.strided:
                    reasons[node] = f"{node.target}: of the layout {tensor.layout}"
    return reasons


def _reasons(graph: torch.fx.Graph) -> Dict[torch.fx.Node, str]:
    """The calls that no module has, and why."""
    return {**unsupported(graph), **_elsewhere(graph)}


def _partitioned(
    gm: torch.fx.GraphModule, static: Sequence[int], options: Options, watch: Optional[Watch] = None, whole=True
):
    """One CompiledGraph for the whole graph where all of it has a form in ONNX; else the graph with
    its parts that have."""
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import OperatorSupportBase

    reasons = _reasons(gm.graph)
    why_not = sorted(set(reasons.values()))
    calls = [node for node in gm.graph.nodes if node.op == "call_function"]
    if whole and not reasons and len(calls) >= options.min_nodes:
        return CompiledGraph(gm, static, options, watch)
    for why in why_not:
        warn_once(f"in eager: {why}")
    if why_not and not options.fallback:
        raise _program.PrunerError("; ".join(why_not))

    class Support(OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return node.op == "call_function" and node not in reasons

    placeholders = list(gm.graph.find_nodes(op="placeholder"))
    weights = {placeholders[i].name for i in static}
    partitioner = CapabilityBasedPartitioner(gm, Support(), allows_single_node_partition=False)
    parts = [p for p in partitioner.propose_partitions() if len(p.nodes) >= options.min_nodes]
    if not parts:
        return gm
    fused = partitioner.fuse_partitions(parts)
    for node in list(fused.graph.find_nodes(op="call_module")):
        part = getattr(fused, node.target)
        places = [
            i for i, arg in enumerate(node.args)
            if isinstance(arg, torch.fx.Node) and arg.op == "placeholder" and arg.name in weights
        ]  # fmt: skip
        setattr(fused, node.target, _Part(part, places, options, watch))
    fused.recompile()
    return fused


class _Part(torch.nn.Module):
    """A part of a graph: what it gives is a tensor where it has one output, else a tuple."""

    def __init__(self, part: torch.fx.GraphModule, static: Sequence[int], options: Options, watch: Optional[Watch]):
        super().__init__()
        output = next(iter(part.graph.find_nodes(op="output")))
        self._one = isinstance(output.args[0], torch.fx.Node)
        if self._one:
            output.args = ((output.args[0],),)
            part.recompile()
        self._call = CompiledGraph(part, static, options, watch)

    def forward(self, *args):
        outputs = self._call(*args)
        return outputs[0] if self._one else tuple(outputs)


def export(
    model,
    path,
    args: Sequence = (),
    *,
    dynamic_shapes=None,
    records: Optional[Sequence] = None,
    options: Sequence[str] = (),
) -> str:
    """A module of a torch.export.ExportedProgram, or of a model with example arguments: its inputs
    are those of the program, its outputs output_0 and so on; shapes are the examples'.

    dynamic_shapes: as torch.export.export() has them, each Dim with its max: the module takes all shapes of
    these ranges. records: of `pruner tune`. options: more of `pruner compile`, as ["--precision", "bf16"].
    PrunerError or NotImplementedError: what cannot be compiled."""
    program = _decomposed(model, args, dynamic_shapes)
    more = ["--records", *records] if records else []
    for each in dims_of(ranges_of(program)):
        more += ["--dim", each]
    with tempfile.TemporaryDirectory() as scratch:
        onnx = _write(program, os.path.join(scratch, "model.onnx"))
        _program.run(["compile", onnx, *more, *options, "-o", os.fspath(path)])
    return os.fspath(path)


def export_onnx(model, path, args: Sequence = (), *, dynamic_shapes=None) -> str:
    """The same as an ONNX file, with its weights beside it in `path`.weights."""
    return _write(_decomposed(model, args, dynamic_shapes), path)


def _decomposed(model, args: Sequence, dynamic_shapes) -> torch.export.ExportedProgram:
    program = model
    if not isinstance(model, torch.export.ExportedProgram):
        program = torch.export.export(model.eval(), tuple(args), dynamic_shapes=dynamic_shapes)
    elif dynamic_shapes is not None:
        raise ValueError("an ExportedProgram has its dynamic shapes already")
    with resizes_of_eager():
        return program.run_decompositions(decompositions())


def _write(program: torch.export.ExportedProgram, path) -> str:
    signature = program.graph_signature
    if signature.buffers_to_mutate:
        changed = ", ".join(signature.buffers_to_mutate.values())
        raise NotImplementedError(f"the model changes its buffers {changed}")
    held = {**program.state_dict, **program.constants}
    sources = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    weights = {name: held[source] for name, source in sources.items()}
    write_onnx(program.graph_module.graph, os.fspath(path), weights)
    return os.fspath(path)
