"""Makes Pruner a backend of torch.compile, and exports torch models to modules.

    fast = torch.compile(model.eval(), backend="pruner")
    with torch.inference_mode():
        fast(x)                                            # compiles, in seconds
    torch.compile(model, backend="pruner", options={"budget": "3m"})  # and tunes while it runs

Calls that Pruner cannot compile stay in eager, and so does training. pruner.torch.Options describes
the options.
"""

import logging
import os
import tempfile
from dataclasses import fields
from typing import Dict, List, Optional, Sequence

import torch

from pruner import _program
from pruner.torch import devices
from pruner.torch.dynamic import ByRange, ranges_of
from pruner.torch.importer import decompositions, resizes_of_eager, unsupported, write_onnx
from pruner.torch.operators import operators
from pruner.torch.runtime import CompiledGraph, Options, dims_of, warn_once
from pruner.torch.verify import Watch

__all__ = ["CompiledGraph", "Options", "backend", "export", "operators"]

log = logging.getLogger("pruner.torch")

_MOST_SHAPES = 8  # shapes of a graph that have a module each; other shapes stay in eager


def backend(gm: torch.fx.GraphModule, example_inputs, *, options: Optional[dict] = None, mode=None):
    """Compiles a graph; torch.compile finds this function by the name "pruner".

    gm: the graph that Dynamo recorded.
    example_inputs: the inputs with which Dynamo recorded the graph.
    options: the fields of pruner.torch.Options, by name.
    mode: another mode than "default" is ignored, with a warning; options={"budget": "3m"} tunes.

    Returns a callable with the inputs and outputs of the graph, for the device on which they lie:
    the CPU, or a CUDA device. A call that records gradients runs in eager.

    Raises ValueError if an option is unknown or has an unknown value. Raises PrunerError instead of
    staying in eager if the option `fallback` is False.
    """
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
    """Returns the places of the weights among the inputs of the graph that is being compiled.
    Weights that the graph changes are left out."""
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
    """Returns the callable of a graph of symbolic shapes.

    If the whole graph has a form in ONNX, the callable runs a module for each range of shapes.
    Otherwise the callable has a module for each shape.
    """
    by_shape = _ByShape(gm, static, options, watch)
    reasons = _reasons(gm.graph)
    calls = [node for node in gm.graph.nodes if node.op == "call_function"]
    if devices.graph_device(gm.graph) != devices.CPU:
        warn_once("a graph has a module for each shape: modules for CUDA have one shape each")
        return by_shape
    if reasons or len(calls) < options.min_nodes:
        log.debug("a graph has a module for each shape: %s", "; ".join(sorted(set(reasons.values()))))
        return by_shape
    try:
        return ByRange(gm, static, options, watch, by_shape)
    except NotImplementedError as error:
        warn_once(f"a graph has a module for each shape: {error}")
        return by_shape


class _ByShape:
    """A graph of symbolic shapes, traced and compiled again for each shape of a call."""

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
        """Traces the graph again with numbers in place of symbols, and returns its callable."""
        from torch.fx.experimental.proxy_tensor import make_fx

        gm = make_fx(self._gm, tracing_mode="fake")(*args)
        gm.graph.eliminate_dead_code()
        gm.recompile()
        # If a number is among the arguments, the graph is compiled in parts. Nothing reads the
        # number, so that no part has it as an argument.
        whole = all(isinstance(x, torch.Tensor) for x in args)
        return _partitioned(gm, self._static, self._options, self._watch, whole)


def _reasons(graph: torch.fx.Graph) -> Dict[torch.fx.Node, str]:
    """Returns the calls that cannot be in a module, with the reasons."""
    return {**unsupported(graph), **devices.elsewhere(graph)}


def _partitioned(
    gm: torch.fx.GraphModule, static: Sequence[int], options: Options, watch: Optional[Watch] = None, whole=True
):
    """Returns one CompiledGraph for the whole graph if all calls have a form in ONNX. Otherwise
    returns the graph with a module for each part whose calls have a form in ONNX."""
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
    """A compiled part of a graph. A part with one output returns a tensor, other parts return a
    tuple."""

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
    """Compiles a model to a module and returns the path of the module.

    model: a torch.export.ExportedProgram, or a torch module with example arguments. The module's
        inputs are the inputs of the program; its outputs are output_0, output_1 and so on.
    path: the file of the module. A model on a CUDA device gives a module for that device's
        architecture, unless `options` name another target.
    args: the example arguments of a torch module. The module has their shapes.
    dynamic_shapes: the dynamic dimensions, as torch.export.export() takes them. Each Dim needs a
        `max`. The module takes all shapes in these ranges.
    records: the record files of `pruner tune`.
    options: more arguments of `pruner compile`, such as ["--precision", "bf16"].

    Raises NotImplementedError if a call has no form in ONNX, if the model changes its buffers, or
    if a dynamic dimension has no end. Raises PrunerError if the program cannot compile the model.
    Raises ValueError if an ExportedProgram comes with `dynamic_shapes`.
    """
    program = _decomposed(model, args, dynamic_shapes)
    more = ["--records", *records] if records else []
    if "--target" not in options:
        more += devices.target_arguments(program.graph_module.graph)
    for each in dims_of(ranges_of(program)):
        more += ["--dim", each]
    with tempfile.TemporaryDirectory() as scratch:
        onnx = _write(program, os.path.join(scratch, "model.onnx"))
        environment = devices.compiler_environment(devices.graph_device(program.graph_module.graph))
        _program.run(["compile", onnx, *more, *options, "-o", os.fspath(path)], environment=environment)
    return os.fspath(path)


def export_onnx(model, path, args: Sequence = (), *, dynamic_shapes=None) -> str:
    """Writes the model of export() as an ONNX file, with its weights in the file `path`.weights.
    Returns the path of the ONNX file. Raises the same errors as export(), except PrunerError."""
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
