#!/usr/bin/env python3
"""Runs the backend tests of the onnx package through import, compilation and execution.

The script writes the outcome of each case to bench/results/onnx_suite.json, and writes
docs/reference/operators.md.

  onnx_suite.py                 all cases of ONNX's own domain
  onnx_suite.py --kind node     those of one kind (node, simple, light, pytorch-converted, ...)
  onnx_suite.py --check         fails where a case is wrong that was not, or one no longer passes
                                that did when the results were written; writes nothing

Each case is tried as it is. If the case fails, the inputs that say a shape become constants of the
model, and the case is tried again. Examples are a Reshape's shape, a Slice's starts, and the
tensors from which these are computed. The script needs the packages of requirements.txt and the
program onnx_cases.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.loader import load_model_tests

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results" / "onnx_suite.json"
PAGE = ROOT / "docs" / "reference" / "operators.md"
FILE_KINDS = ("simple", "light", "pytorch-converted", "pytorch-operator")
# Numbers of the inputs, by operator, that decide the form of the result rather than its values.
SHAPE_INPUTS = {
    "AffineGrid": [1], "Col2Im": [1, 2], "CenterCropPad": [1], "Compress": [1],
    "ConstantOfShape": [0],
    "CumProd": [1], "CumSum": [1], "DFT": [1, 2], "Expand": [1], "If": [0], "Loop": [0, 1],
    "MaxUnpool": [2], "NonMaxSuppression": [2, 3, 4], "OneHot": [1], "Pad": [1, 2, 3],
    "Range": [0, 1, 2], "Reshape": [1], "Resize": [1, 2, 3], "STFT": [1, 3],
    "SequenceAt": [1], "SequenceErase": [1], "SequenceInsert": [2], "Slice": [1, 2, 3, 4],
    "Split": [1], "SplitToSequence": [1], "Squeeze": [1], "Tile": [1], "TopK": [1], "Trilu": [1],
    "Unsqueeze": [1], "Upsample": [1], "BlackmanWindow": [0], "HammingWindow": [0],
    "HannWindow": [0], "MelWeightMatrix": [0, 1, 2, 3, 4], "Dropout": [1, 2],
    "ReduceL1": [1], "ReduceL2": [1], "ReduceLogSum": [1], "ReduceLogSumExp": [1],
    "ReduceMax": [1], "ReduceMean": [1], "ReduceMin": [1], "ReduceProd": [1], "ReduceSum": [1],
    "ReduceSumSquare": [1], "TensorScatter": [2],
}

# Cases that expect the numbers of numpy's generator; ONNX defines only the distribution.
DRAWN = re.compile(r"test_(bernoulli|training_dropout(?!.*zero_ratio))")


def cases(kinds):
    """Yields (kind, name, model, inputs, outputs, rtol, atol) for each case of the given kinds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "node" in kinds:
            for case in collect_testcases(None):
                if DRAWN.match(case.name):
                    continue
                inputs, outputs = case.data_sets[0]
                yield ("node", case.name, case.model, inputs, outputs, case.rtol, case.atol)
    for kind in FILE_KINDS:
        if kind not in kinds:
            continue
        for case in load_model_tests(kind=kind):
            folder = pathlib.Path(case.model_dir)
            if not (folder / "model.onnx").is_file():
                continue
            model = onnx.load(folder / "model.onnx")
            data = folder / "test_data_set_0"
            read = lambda what: [read_value(path) for path in numbered(data, what)]
            yield (kind, case.name, model, read("input"), read("output"), case.rtol, case.atol)


def numbered(folder, what):
    return sorted(folder.glob(f"{what}_*.pb"), key=lambda p: int(re.findall(r"\d+", p.name)[-1]))


def read_value(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return tensor


def tensor_proto(value, info):
    """Returns the value as a TensorProto, or None if the value is no tensor (a sequence, an
    optional)."""
    if not info.type.HasField("tensor_type"):
        return None
    if isinstance(value, onnx.TensorProto):
        tensor = onnx.TensorProto()
        tensor.CopyFrom(value)
        tensor.name = info.name
        return tensor
    return numpy_helper.from_array(np.asarray(value), info.name)


def all_nodes(graph):
    """Yields the nodes of a graph. The nodes of graphs in a node come before that node."""
    for node in graph.node:
        for attribute in node.attribute:
            yield from all_nodes(attribute.g)
        yield node


def constants_form(model, feeds):
    """Returns the model with the inputs that say a shape as initializers, or None if there are no
    such inputs."""
    nodes = list(all_nodes(model.graph))
    say = {node.input[i] for node in nodes
           for i in SHAPE_INPUTS.get(node.op_type, []) if i < len(node.input)}
    for node in reversed(nodes):  # Shape and Size need no values of their inputs
        if say & set(node.output) and node.op_type not in ("Shape", "Size"):
            say |= set(node.input)
            say |= {value.name for attribute in node.attribute for value in attribute.g.output}
    say &= set(feeds)
    if not say:
        return None
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    del changed.graph.input[:]
    changed.graph.input.extend(i for i in model.graph.input if i.name not in say)
    changed.graph.initializer.extend(feeds[name] for name in sorted(say))
    return changed


def is_default_domain(model):
    return all(i.domain in ("", "ai.onnx") for i in model.opset_import)


def write_case(folder, model, inputs, outputs, rtol, atol):
    """Writes the model, inputs, outputs and tolerance of a case to a folder. If a value is no
    tensor, only the model is written."""
    folder.mkdir(parents=True)
    initialized = {t.name for t in model.graph.initializer}
    infos = [i for i in model.graph.input if i.name not in initialized]
    # A case has no value for an optional input that the case leaves out.
    protos = [tensor_proto(value, info) for value, info in zip(inputs, infos)]
    expected = [tensor_proto(value, info) for value, info in zip(outputs, model.graph.output)]
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    if None in protos or None in expected:
        return
    for what, tensors in (("input", protos), ("output", expected)):
        for i, tensor in enumerate(tensors):
            (folder / f"{what}_{i}.pb").write_bytes(tensor.SerializeToString())
    (folder / "tolerance").write_text(f"{rtol} {atol}\n")
    constants = constants_form(model, {t.name: t for t in protos})
    if constants is not None:
        (folder / "constants.onnx").write_bytes(constants.SerializeToString())


def run(program, folder, names):
    """Runs onnx_cases and returns its lines by case. A case that ends the process is a crash; the
    other cases go on."""
    lines = {}
    left = list(names)
    while left:
        done = subprocess.run([program, folder, *left], capture_output=True, text=True)
        for text in done.stdout.splitlines():
            if not text.startswith("{"):
                continue  # a warning of the program
            line = json.loads(text)
            lines[line.pop("case")] = line
        left = [name for name in left if name not in lines]
        if left:
            lines[left[0]] = {"outcome": "crash", "reason": f"exit {done.returncode}"}
            left.pop(0)
    return lines


def best(line, what="outcome"):
    """Returns the outcome (or the reason) of a case: with constants if the case was tried so."""
    return line.get("constants", line)[what]


def totals(results):
    plain = collections.Counter(line["outcome"] for line in results.values())
    with_constants = collections.Counter(best(line) for line in results.values())
    return {"cases": len(results), "as they are": dict(plain),
            "with shape inputs constant": dict(with_constants)}


def operator_table(results, calls, read):
    """Returns the rows of docs/reference/operators.md: each operator of ONNX with its version, cases
    and types."""
    of = collections.defaultdict(list)
    for name, (operators, _) in calls.items():
        for operator in operators:
            of[operator].append(name)
    newest = {}
    for schema in onnx.defs.get_all_schemas():
        if schema.domain == "":
            newest[schema.name] = schema.since_version
    rows = []
    for operator in sorted(set(newest) | {name for name in read if "::" in name}):
        names = of[operator]
        passing = [n for n in names if best(results[n]) == "pass"]
        types = sorted({t for n in passing for t in calls[n][1]})
        rows.append(f"| {operator} | {'yes' if operator in read else 'no'} | "
                    f"{newest.get(operator, '')} | {len(passing)} of {len(names)} | "
                    f"{', '.join(types)} |")
    return rows


def write_page(results, calls, program):
    """Writes docs/reference/operators.md."""
    listed = subprocess.run([program, "ops", "--onnx"], capture_output=True, text=True, check=True)
    counts = totals(results)
    passing = {form: counts[form].get("pass", 0) for form in list(counts)[1:]}
    reasons = [textwrap.fill(f"- {len(of)}: {' '.join(reason.split())} (`{of[0]}`)", 100,
                             subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
               for reason, of in refusals(results).items()]
    PAGE.write_text("\n".join([
        "# Operators of ONNX", "",
        textwrap.fill(
            "This page is for you if you want to know whether Pruner reads an operator of your ONNX "
            "file. The table has each operator of ONNX, and says how Pruner does in the tests of "
            "the onnx package.", 100), "",
        textwrap.fill(
            "Written by `bench/onnx_suite.py` from the backend tests of the onnx package "
            f"{onnx.__version__}: {counts['cases']} cases, of which {passing['as they are']} pass "
            f"as they are and {passing['with shape inputs constant']} with the inputs that say a "
            "shape as constants of the model. *since*: the version of ONNX's newest definition, "
            "which is the form that is read; older ones are brought to it. *cases*: those whose "
            "model calls the operator, passing in either form. *types*: of the inputs of passing "
            "cases.", 100), "",
        "| operator | read | since | cases | types |", "|---|---|--:|--:|---|",
        *operator_table(results, calls, set(listed.stdout.split())), "",
        "## Cases that do not pass, by reason", "", *reasons, ""]))


def refusals(results):
    """Returns the names of the cases that do not pass, by reason. Reasons have no names and
    numbers, so that equal reasons count together."""
    reasons = collections.defaultdict(list)
    for name, line in results.items():
        if best(line) in ("pass",):
            continue
        reason = best(line, "reason")
        reason = re.sub(r'^\S*\.onnx: ', "", reason)
        reason = re.sub(r'\(node [^)]*\)', "", re.sub(r'node "[^"]*": |"[^"]*"', "", reason))
        reasons[f"{best(line)}: {reason.strip()}"].append(name)
    return dict(sorted(reasons.items(), key=lambda item: -len(item[1])))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", action="append", help="of cases; default: all")
    parser.add_argument("--only", default="", help="names that match this expression")
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build" / "release" / "onnx_cases")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=None)
    options = parser.parse_args()
    kinds = options.kind or ["node", *FILE_KINDS]
    with tempfile.TemporaryDirectory(prefix="onnx_suite_") as temporary:
        folder = pathlib.Path(temporary)
        names, calls = [], {}
        for kind, name, model, inputs, outputs, rtol, atol in cases(kinds):
            full = name if kind == "node" else f"{kind}_{name}"
            if not is_default_domain(model) or not re.search(options.only, full):
                continue
            write_case(folder / full, model, inputs, outputs, rtol, atol)
            names.append(full)
            calls[full] = ({node.op_type for node in model.graph.node},
                           {onnx.TensorProto.DataType.Name(i.type.tensor_type.elem_type).lower()
                            for i in model.graph.input if i.type.HasField("tensor_type")})
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            parts = [names[i::4 * options.jobs] for i in range(4 * options.jobs)]
            done = pool.map(lambda part: run(str(options.program), folder, part), parts)
            results = {name: line for lines in done for name, line in lines.items()}
    for name in sorted(results):
        if best(results[name]) in ("wrong", "type", "crash"):
            print(f"{name}: {best(results[name])}: {best(results[name], 'reason')}")
    print(json.dumps(totals(results), indent=1))
    for reason, of in list(refusals(results).items())[:400]:
        print(f"{len(of):5} {reason[:200]}   e.g. {of[0]}")
    if options.check:
        known = json.loads(RESULTS.read_text())
        lost = [n for n in known["passing"] if n in results and best(results[n]) != "pass"]
        bad = [n for n, line in results.items()
               if best(line) in ("wrong", "type", "crash") and n not in known["wrong"]]
        for name in lost + bad:
            print(f"{name} was {'passing' if name in lost else 'not wrong'} when the results were "
                  f"written: {results[name]}")
        sys.exit(1 if lost or bad else 0)
    if options.output or not (options.kind or options.only):
        output = options.output or RESULTS
        output.parent.mkdir(exist_ok=True)
        output.write_text(json.dumps({
            "onnx": onnx.__version__, "totals": totals(results),
            "refused": {reason: of for reason, of in refusals(results).items()},
            "wrong": {n: best(line, "reason") for n, line in sorted(results.items())
                      if best(line) in ("wrong", "type", "crash")},
            "passing": sorted(n for n, line in results.items() if best(line) == "pass")},
            indent=1) + "\n")
        if output == RESULTS:
            write_page(results, calls, options.program.parent / "pruner")


if __name__ == "__main__":
    main()
