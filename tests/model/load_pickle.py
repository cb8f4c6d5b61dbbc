"""load_pickle.py FILE.pkl PROGRAMS.json: loads a network as the published scripts do, with stand-ins
for their classes; prints its tensors' names and the programs' scores, and that it trains on."""

import json
import pickle
import sys
import types

import torch


def rows_summed(network, sizes, rows):
    encoded = network.segment_encoder(rows)
    program = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    return torch.zeros(len(sizes), encoded.shape[1]).index_add(0, program, encoded)


def decoded(network, hidden):
    hidden = network.norm(hidden)
    hidden = network.l0(hidden) + hidden
    return network.decoder(network.l1(hidden) + hidden).squeeze(1)


class PAMModule(torch.nn.Module):
    def forward(self, sizes, rows, dataflow):
        steps = self.gemm_encoder(dataflow).transpose(0, 1)
        steps = self.attention(steps, steps, steps)[0] + steps
        return decoded(self, self.fuse(torch.cat([rows_summed(self, sizes, rows), steps.sum(0)], 1)))


class SegmentSumMLPModule(torch.nn.Module):
    def forward(self, sizes, rows, dataflow):
        assert not self.add_sigmoid
        return decoded(self, rows_summed(self, sizes, rows))


for package in ["tvm", "tvm.auto_scheduler", "tvm.auto_scheduler.cost_model"]:
    sys.modules[package] = types.ModuleType(package)
for module, network_class in [("pam_model", PAMModule), ("mlp_model", SegmentSumMLPModule)]:
    sys.modules[f"{package}.{module}"] = types.SimpleNamespace(**{network_class.__name__: network_class})

with open(sys.argv[1], "rb") as file:
    network, *others = pickle.load(file)
with open(sys.argv[2]) as file:
    programs = json.load(file)
scales = [other for other in others if torch.is_tensor(other)]
inputs = [torch.tensor(programs["rows"]) / scales[0], torch.tensor(programs["dataflow"])]
if len(scales) > 1:
    inputs[1] = inputs[1] / scales[1]
sizes = torch.tensor(programs["sizes"])
with torch.no_grad():
    scores = network(sizes, *inputs).tolist()
network.train()(sizes, *inputs).sum().backward()
assert all(parameter.grad is not None for parameter in network.parameters())
names = [name for name in network.state_dict() if not name.endswith("num_batches_tracked")]
print(json.dumps({"torch": torch.__version__, "names": names, "scores": scores}))
