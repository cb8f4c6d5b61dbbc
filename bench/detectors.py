"""Compares object detectors of torchvision with ONNX Runtime: the boxes and the time.

    python3 bench/detectors.py ssdlite320_mobilenet_v3_large retinanet_resnet50_fpn [--size 320] [--export-only]

torch.onnx exports each model with weights drawn by seed (with the TorchScript exporter, because
torch.export refuses these models). The weights of the last layers are scaled so that scores spread
and boxes are found. Both programs get the same files and images. The programs take turns of several
runs, and the median counts.

Detections of equal scores may stand in any order. A score at a threshold, or a box at the border of
a pixel, may be rounded to either side. If outputs differ, and ONNX Runtime gives our outputs for
the image with noise of 1e-6, the difference is a tie. If a shape differs, or a value by more than
1 % of the largest value without a tie, the exit status is 1.

The script needs torch, torchvision, onnx and onnxruntime. Exported files stay in --work-dir.
"""

import argparse
import os
import subprocess
import sys
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Factors of the weights of the last layers. With these factors, drawn weights find boxes of
# different scores.
SCALES = {
    "ssd300_vgg16": 0.3,
    "ssdlite320_mobilenet_v3_large": 5,
    "retinanet_resnet50_fpn": 2,
    "fcos_resnet50_fpn": 2,
    "fasterrcnn_resnet50_fpn": 3,
    "maskrcnn_resnet50_fpn": 2,
    "keypointrcnn_resnet50_fpn": 2,
}
# Factors of the weights that move boxes. Masks and key points have whole pixels: the less boxes
# move, the fewer boxes lie at the border of a pixel.
MOVES = {"ssd300_vgg16": 1, "maskrcnn_resnet50_fpn": 2, "keypointrcnn_resnet50_fpn": 1}
TURNS = 2  # turns of each program on an image
SCORES = ("cls_logits", "cls_score", "classification_head.module_list")
REGRESSIONS = ("bbox_pred", "bbox_reg", "regression_head.module_list")


def export(name: str, size: int, path: str) -> None:
    import torch
    from torchvision.models import detection

    torch.manual_seed(0)
    sizes = {} if name.startswith("ssd") else {"min_size": size, "max_size": size}
    model = getattr(detection, name)(weights=None, weights_backbone=None, **sizes).eval()
    with torch.no_grad():
        for label, weight in model.named_parameters():
            of_scores = any(part in label for part in SCORES)
            if of_scores and weight.dim() > 1:
                weight.mul_(SCALES[name])
            elif of_scores:
                weight.copy_(0.3 * torch.randn_like(weight) - (2 if "rpn" not in label and "logits" in label else 0))
            elif any(part in label for part in REGRESSIONS) and weight.dim() > 1:
                weight.mul_(MOVES.get(name, 4))
            if name.startswith("keypoint") and label.endswith("cls_score.bias"):
                weight[1] += 4  # the only class beside the background
    image = [torch.rand(3, size, size)]
    torch.onnx.export(model, (image,), path, dynamo=False, opset_version=17, input_names=["image"])


def images(shape, count: int):
    """Yields images in turn: noise, a smooth image, and an empty image."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        noise = rng.random(shape, dtype=np.float32)
        smooth = 0.5 + 0.1 * np.cumsum(rng.standard_normal(shape), axis=2)
        yield [noise, np.clip(smooth, 0, 1).astype(np.float32), np.zeros(shape, np.float32)][seed % 3]


def in_their_order(ours, theirs):
    """Returns our detections, each in the place of the most similar detection of ONNX Runtime.
    Detections whose scores differ only by rounding may stand in either order."""
    small = [i for i, b in enumerate(theirs) if b.ndim > 0 and b[0:1].size <= 64]
    rows = [np.concatenate([outputs[i].reshape(len(outputs[i]), -1).astype(np.float64) for i in small], axis=1)
            for outputs in (ours, theirs)]
    rows = [row / np.maximum(1, np.abs(rows[1]).max(axis=0)) for row in rows]
    distances = np.abs(rows[0][None, :, :] - rows[1][:, None, :]).max(axis=2)
    order = []
    for place in range(len(rows[1])):
        order.append(int(distances[place].argmin()))
        distances[:, order[-1]] = np.inf
    return [output[order] for output in ours]


def difference(ours, theirs) -> str:
    """Returns a text of the first difference between the outputs, or ""."""
    for place, (a, b) in enumerate(zip(ours, theirs)):
        if a.shape != b.shape:
            return f"output {place} is {a.shape}, expected {b.shape}"
    if len(theirs[0]) > 0:
        ours = in_their_order(ours, theirs)
    for place, (a, b) in enumerate(zip(ours, theirs)):
        if a.size and np.abs(a.astype(np.float64) - b).max() > 1e-2 * max(1, np.abs(b).max()):
            return f"output {place} differs by {np.abs(a.astype(np.float64) - b).max():.3g}"
    return ""


def is_tie(ours, image, theirs) -> bool:
    for seed in range(8):
        noise = 1e-6 * np.random.default_rng(seed).standard_normal(image.shape)
        if not difference(ours, theirs((image + noise).astype(np.float32))):
            return True
    return False


def compare(name: str, path: str, options) -> bool:
    import onnxruntime

    sys.path.insert(0, os.path.join(ROOT, "python"))
    import pruner

    module_path = os.path.splitext(path)[0] + ".so"
    start = time.perf_counter()
    command = [options.pruner, "compile", path, "-o", module_path, "--quiet", "--threads", str(options.threads)]
    if subprocess.run(command).returncode != 0:
        print(f"{name}\trefused")
        return False
    compile_s = time.perf_counter() - start
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    module = pruner.Module(module_path, options.threads)
    wrong, ties, found, times = [], [], [], {"ours": [], "theirs": []}
    for number, image in enumerate(images(module.inputs[0].shape, options.images)):
        runs = {"ours": lambda: module(image), "theirs": lambda: session.run(None, {"image": image})}
        outputs = {who: run() for who, run in runs.items()}
        found.append(str(len(outputs["theirs"][0])))
        differs = difference(outputs["ours"], outputs["theirs"])
        if differs and is_tie(outputs["ours"], image, lambda noisy: session.run(None, {"image": noisy})):
            ties.append(number)
        elif differs:
            wrong.append(f"image {number}: {differs}")
        for turn in range(TURNS):
            for who in sorted(runs, reverse=turn % 2 == 1):
                runs[who]()  # an untimed run: threads of the other program may still spin
                for _ in range(options.runs // TURNS):
                    start = time.perf_counter()
                    runs[who]()
                    times[who].append(time.perf_counter() - start)
    ours, theirs = (float(np.median(times[who])) * 1e3 for who in ("ours", "theirs"))
    print(
        f"{name}\tcompiled in {compile_s:.0f} s\t{ours:.1f} ms\tONNX Runtime {theirs:.1f} ms\tratio {ours / theirs:.2f}"
        f"\tboxes {','.join(found)}\t{'; '.join(wrong) or 'right'}"
        + (f"\tties at images {', '.join(map(str, ties))}" if ties else "")
    )
    return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(SCALES))
    parser.add_argument("--size", type=int, default=160, help="rows and columns of the images")
    parser.add_argument("--images", type=int, default=6)
    parser.add_argument("--runs", type=int, default=10, help="of each image")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--work-dir", default=os.path.join(ROOT, "build", "detectors"))
    parser.add_argument("--pruner", default=os.path.join(ROOT, "build", "release", "pruner"))
    parser.add_argument("--export-only", action="store_true")
    options = parser.parse_args()
    os.makedirs(options.work_dir, exist_ok=True)
    right = True
    for name in options.models:
        path = os.path.join(options.work_dir, f"{name}_{options.size}.onnx")
        if not os.path.exists(path):
            export(name, options.size, path)
        if not options.export_only:
            right &= compare(name, path, options)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
