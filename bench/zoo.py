#!/usr/bin/env python3
"""Compares the modules of many exported architectures with ONNX Runtime.

The architectures are those of torchvision, timm and transformers, with random weights. Both of
torch's exporters export each architecture. The script writes bench/results/zoo.json.

  zoo.py                    all of them
  zoo.py --only REGEX       those whose names match (printed, not written)
  zoo.py --list             their names

A file passes when max |difference| / max |expected| <= 1e-4 for each output. Sizes are small,
because the test asks only whether every exported operator is read and computes the same. The script
needs the packages of requirements_zoo.txt.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results" / "zoo.json"
TOLERANCE = 1e-4
EXPORTERS = ("dynamo", "script")
LIMIT_S = 600  # limit of one architecture by one exporter

TORCHVISION = {  # name: size of the image
    "alexnet": 96, "convnext_tiny": 64, "densenet121": 64, "efficientnet_b0": 64,
    "efficientnet_v2_s": 64, "googlenet": 64, "inception_v3": 96, "maxvit_t": 224, "mnasnet0_5": 64,
    "mobilenet_v2": 64, "mobilenet_v3_small": 64, "mobilenet_v3_large": 64, "regnet_x_400mf": 64,
    "regnet_y_400mf": 64, "resnet18": 64, "resnet50": 64, "resnext50_32x4d": 64,
    "shufflenet_v2_x1_0": 64, "squeezenet1_0": 64, "squeezenet1_1": 64, "swin_t": 64,
    "swin_v2_t": 64, "vgg11": 64, "vgg11_bn": 64, "vit_b_32": 224, "wide_resnet50_2": 64,
}
SEGMENTATION = {"deeplabv3_mobilenet_v3_large": 96, "deeplabv3_resnet50": 64, "fcn_resnet50": 64,
                "lraspp_mobilenet_v3_large": 96}
VIDEO = {"r3d_18": (8, 48), "mc3_18": (8, 48), "r2plus1d_18": (8, 48), "s3d": (16, 224),
         "swin3d_t": (8, 64), "mvit_v2_s": (16, 224)}
TIMM = {  # name: size of the image
    "bat_resnext26ts": 128, "beit_base_patch16_224": 224, "botnet26t_256": 256,
    "caformer_s18": 64, "cait_xxs24_224": 224, "coat_lite_tiny": 224, "coatnet_nano_rw_224": 224,
    "convformer_s18": 64, "convit_tiny": 224, "convmixer_768_32": 64, "convnextv2_atto": 64,
    "crossvit_tiny_240": 240, "cs3darknet_s": 64, "cspresnet50": 64, "darknet17": 64,
    "davit_tiny": 64, "deit_tiny_patch16_224": 224, "dla34": 64, "dpn48b": 64,
    "eca_nfnet_l0": 64, "ecaresnet50t": 64, "edgenext_xx_small": 64, "efficientformer_l1": 224,
    "efficientformerv2_s0": 224, "efficientnet_lite0": 64, "efficientvit_b0": 64,
    "efficientvit_m0": 224, "ese_vovnet19b_dw": 64, "eva02_tiny_patch14_224": 224,
    "fastvit_t8": 64, "fbnetc_100": 64, "focalnet_tiny_srf": 64, "gcresnet33ts": 64,
    "gcvit_xxtiny": 224, "gernet_s": 64, "ghostnet_100": 64, "ghostnetv2_100": 64,
    "gmixer_24_224": 224, "gmlp_s16_224": 224, "halonet26t": 256, "hardcorenas_a": 64,
    "hgnet_tiny": 64, "hgnetv2_b0": 64, "hiera_tiny_224": 224, "hrnet_w18_small": 64,
    "inception_next_atto": 64, "inception_resnet_v2": 96, "inception_v4": 96,
    "lambda_resnet26t": 128, "lcnet_050": 64, "legacy_seresnet18": 64, "levit_128s": 224,
    "maxvit_rmlp_pico_rw_256": 256, "mambaout_femto": 64,
    "mixer_s32_224": 224, "mixnet_s": 64, "mobilenetv4_conv_small": 64, "mobileone_s0": 64,
    "mobilevit_xxs": 64, "mobilevitv2_050": 64, "mvitv2_tiny": 224, "nest_tiny": 224,
    "nextvit_small": 64, "nf_resnet26": 64, "nfnet_f0": 64, "pit_ti_224": 224, "poolformer_s12": 64,
    "pvt_v2_b0": 64, "rdnet_tiny": 64, "regnetz_005": 64, "repghostnet_050": 64, "repvgg_a0": 64,
    "repvit_m0_9": 64, "res2net50_26w_4s": 64, "resmlp_12_224": 224, "resnest14d": 64,
    "resnetblur50": 64, "resnetrs50": 64, "resnetv2_50": 64, "rexnet_100": 64,
    "selecsls42b": 64, "semnasnet_075": 64, "sequencer2d_s": 224, "shvit_s1": 64, "skresnet18": 64,
    "spnasnet_100": 64, "starnet_s1": 64, "swiftformer_xs": 64, "swinv2_cr_tiny_224": 224,
    "tf_efficientnetv2_b0": 64, "tiny_vit_5m_224": 224, "tinynet_a": 64, "tnt_s_legacy_patch16_224": 224,
    "tresnet_m": 64, "twins_pcpvt_small": 224, "twins_svt_small": 224, "vgg11": 64,
    "visformer_tiny": 224, "vit_tiny_patch16_224": 224, "vit_relpos_small_patch16_224": 224,
    "vitamin_small_224": 224, "volo_d1_224": 224, "vovnet39a": 64, "wide_resnet50_2": 64,
    "xception41": 64, "xcit_nano_12_p16_224": 224,
}
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 128, "vocab_size": 500, "max_position_embeddings": 128}
CAUSAL = {**SMALL, "num_key_value_heads": 2, "head_dim": 16, "pad_token_id": 0}
TRANSFORMERS = {  # model_type: (kind of input, configuration)
    "bert": ("text", SMALL), "roberta": ("text", SMALL), "electra": ("text", SMALL),
    "albert": ("text", {**SMALL, "embedding_size": 32}), "camembert": ("text", SMALL),
    "xlm-roberta": ("text", SMALL), "mpnet": ("text", SMALL), "ernie": ("text", SMALL),
    "deberta": ("text", SMALL), "deberta-v2": ("text", SMALL), "nystromformer": ("text", SMALL),
    "distilbert": ("text", {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128,
                            "vocab_size": 500}),
    "mobilebert": ("text", {"hidden_size": 64, "num_hidden_layers": 2, "embedding_size": 32,
                            "intra_bottleneck_size": 32, "vocab_size": 500}),
    "squeezebert": ("text", {**SMALL, "embedding_size": 64}), "convbert": ("text", SMALL),
    "fnet": ("text", {**SMALL, "use_tpu_fourier_optimizations": True,
                      "tpu_short_seq_length": 16}),
    "roformer": ("text", {**SMALL, "embedding_size": 64}), "xlnet": ("text", {
        "d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 128, "vocab_size": 500}),
    "modernbert": ("text", {**SMALL, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
                            "cls_token_id": 1, "sep_token_id": 2}),
    "gpt2": ("text", {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 500}),
    "gpt_neo": ("text", {"hidden_size": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 500,
                         "attention_types": [[["global", "local"], 1]]}),
    "gpt_neox": ("text", SMALL),
    "gptj": ("text", {"n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8,
                      "vocab_size": 500}),
    "opt": ("text", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                     "ffn_dim": 128, "vocab_size": 500, "word_embed_proj_dim": 64}),
    "bloom": ("text", {"hidden_size": 64, "n_layer": 2, "n_head": 4, "vocab_size": 500}),
    "llama": ("text", CAUSAL), "mistral": ("text", CAUSAL), "qwen2": ("text", CAUSAL),
    "qwen3": ("text", CAUSAL), "gemma": ("text", CAUSAL), "gemma2": ("text", CAUSAL),
    "gemma3_text": ("text", CAUSAL), "phi": ("text", CAUSAL), "phi3": ("text", CAUSAL),
    "falcon": ("text", {**SMALL, "new_decoder_architecture": False}), "stablelm": ("text", CAUSAL),
    "olmo2": ("text", CAUSAL), "cohere": ("text", CAUSAL), "starcoder2": ("text", CAUSAL),
    "granite": ("text", CAUSAL), "smollm3": ("text", CAUSAL),
    "mamba": ("text", {"hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 500}),
    "vit": ("image", {**SMALL, "image_size": 64}), "deit": ("image", {**SMALL, "image_size": 64}),
    "beit": ("image", {**SMALL, "image_size": 64}), "dinov2": ("image", {**SMALL, "image_size": 56}),
    "swin": ("image", {"image_size": 64, "embed_dim": 32, "depths": [1, 1], "num_heads": [2, 4],
                       "window_size": 4}),
    "segformer": ("image", {"image_size": 64}), "convnext": ("image", {"image_size": 64}),
    "mobilevit": ("image", {"image_size": 64}), "pvt": ("image", {"image_size": 64}),
    "poolformer": ("image", {"image_size": 64}), "resnet": ("image", {"image_size": 64}),
    "levit": ("image", {}), "clip_vision_model": ("image", {**SMALL, "image_size": 64}),
    "clip_text_model": ("text", SMALL), "siglip_vision_model": ("image", {**SMALL, "image_size": 64}),
    "wav2vec2": ("audio", SMALL), "hubert": ("audio", SMALL), "t5": ("encoder", {
        "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4, "vocab_size": 500}),
}


def names():
    return ([f"torchvision/{n}" for n in TORCHVISION] + [f"segmentation/{n}" for n in SEGMENTATION]
            + [f"video/{n}" for n in VIDEO] + [f"timm/{n}" for n in TIMM]
            + [f"transformers/{n}" for n in TRANSFORMERS])


def build(name):
    """Returns the model in evaluation mode, and its example inputs by name."""
    import torch
    torch.manual_seed(0)
    library, model_name = name.split("/")
    image = lambda size: {"image": torch.randn(1, 3, size, size)}
    if library == "torchvision":
        import torchvision.models as zoo
        extra = {"aux_logits": False, "init_weights": False} if "ception" in model_name or \
            model_name == "googlenet" else {}
        size = TORCHVISION[model_name]
        return getattr(zoo, model_name)(weights=None, **extra).eval(), image(size)
    if library == "segmentation":
        import torchvision.models.segmentation as zoo
        model = getattr(zoo, model_name)(weights=None, weights_backbone=None, num_classes=21)
        return OneOutput(model.eval(), "out"), image(SEGMENTATION[model_name])
    if library == "video":
        import torchvision.models.video as zoo
        frames, size = VIDEO[model_name]
        return (getattr(zoo, model_name)(weights=None).eval(),
                {"video": torch.randn(1, 3, frames, size, size)})
    if library == "timm":
        import timm
        model = timm.create_model(model_name, pretrained=False, exportable=True)
        return model.eval(), image(TIMM[model_name])
    from transformers import AutoConfig, AutoModel
    reads, options = TRANSFORMERS[model_name]
    config = AutoConfig.for_model(model_name, **options)
    config.use_cache = False
    config._attn_implementation = "eager"
    if reads == "encoder":
        from transformers import T5EncoderModel
        model = T5EncoderModel(config)
    else:
        model = AutoModel.from_config(config)
    if reads == "image":
        size = options.get("image_size", 224)
        return OneOutput(model.eval(), 0, "pixel_values"), image(size)
    if reads == "audio":
        return OneOutput(model.eval(), 0, "input_values"), {"audio": torch.randn(1, 4000)}
    return (OneOutput(model.eval(), 0, "input_ids"),
            {"tokens": torch.randint(3, 400, (1, 16))})


def OneOutput(model, key, argument=None):
    """Returns a model of one positional input that returns the part `key` of the given model's
    output."""
    import torch

    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            out = self.model(x) if argument is None else self.model(**{argument: x})
            return out[key]

    return Wrapped().eval()


def export_model(model, inputs, exporter, path):
    """Writes the file of a model; the example inputs are given by name."""
    import torch
    more = {} if exporter == "dynamo" else {"opset_version": 17}
    with torch.no_grad():
        torch.onnx.export(model, tuple(inputs.values()), path, input_names=list(inputs),
                          dynamo=exporter == "dynamo", **more)


def export(name, exporter, path):
    model, inputs = build(name)
    export_model(model, inputs, exporter, path)
    return {key: value.numpy() for key, value in inputs.items()}


def run_one(name, exporter, program):
    """Exports, compiles and compares one architecture; returns its outcome as a dictionary."""
    import numpy as np
    import onnxruntime
    import runtimes
    with tempfile.TemporaryDirectory(prefix="zoo_") as temporary:
        folder = pathlib.Path(temporary)
        path = folder / "model.onnx"
        try:
            feeds = export(name, exporter, path)
        except Exception as error:  # the exporter and the library may raise anything
            return {"outcome": "not exported", "reason": f"{type(error).__name__}: {error}"[:300]}
        try:
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            feeds = {i.name: feed for i, feed in zip(session.get_inputs(), feeds.values())}
            expected = session.run(None, feeds)
        except Exception as error:
            return {"outcome": "not exported", "reason": f"ONNX Runtime: {error}"[:300]}
        pruner = runtimes.Pruner(program)
        start = time.monotonic()
        try:
            pruner.run("compile", path, "--no-shipped-records", "-o", folder / "model.so")
        except RuntimeError as error:
            return {"outcome": "refused", "reason": str(error).split(": exit ")[-1][:500]}
        compile_s = round(time.monotonic() - start, 1)
        np.savez(folder / "in.npz", **feeds)
        try:
            pruner.run("run", "--module", folder / "model.so", "--inputs", folder / "in.npz",
                       "--outputs", folder / "out.npz")
        except RuntimeError as error:
            return {"outcome": "failed", "reason": str(error)[-300:]}
        found = np.load(folder / "out.npz")
        outputs = [o.name for o in session.get_outputs()]
        worst = max(runtimes.relative_difference({n: found[n]}, {n: e})
                    for n, e in zip(outputs, expected))
        return {"outcome": "pass" if worst <= TOLERANCE else "wrong", "error": float(worst),
                "compile_s": compile_s}


def run_apart(name, exporter, program):
    """Calls run_one() in a process of its own, whose memory and crashes do not matter to others."""
    command = [sys.executable, __file__, "--one", name, exporter, "--program", str(program)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"outcome": "failed", "reason": f"not done after {LIMIT_S} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        return {"outcome": "failed", "reason": f"exit {done.returncode}: {done.stderr[-300:]}"}
    return json.loads(lines[-1])


def summary(results):
    """Returns the number of architectures that torch can export at all, and the numbers that agree,
    by exporter."""
    exported = [r for r in results.values()
                if any(line["outcome"] != "not exported" for line in r.values())]
    either = [r for r in exported if any(line["outcome"] == "pass" for line in r.values())]
    text = {"architectures": len(exported), "agree by either exporter": len(either)}
    for exporter in EXPORTERS:
        lines = [r[exporter] for r in exported if r[exporter]["outcome"] != "not exported"]
        text[exporter] = {"files": len(lines),
                          "agree": sum(line["outcome"] == "pass" for line in lines)}
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--exporter", choices=EXPORTERS, action="append")
    parser.add_argument("--program", default=ROOT / "build" / "release" / "pruner")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--one", nargs=2, metavar=("NAME", "EXPORTER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run_one(*options.one, options.program)))
        return
    chosen = [n for n in names() if re.search(options.only, n)]
    if options.list:
        print("\n".join(chosen))
        return
    pairs = [(n, e) for n in chosen for e in options.exporter or EXPORTERS]
    results = {n: {} for n in chosen}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        done = pool.map(lambda pair: run_apart(*pair, options.program), pairs)
        for (name, exporter), line in zip(pairs, done):
            results[name][exporter] = line
            words = line.get("reason", f"error {line.get('error', 0):.1e}, "
                                       f"compiled in {line.get('compile_s')} s")
            print(f"{name} {exporter}: {line['outcome']}: {words}", flush=True)
    if options.only or options.exporter:
        return
    print(json.dumps(summary(results), indent=1))
    RESULTS.write_text(json.dumps({"summary": summary(results), "results": results}, indent=1)
                       + "\n")


if __name__ == "__main__":
    main()
