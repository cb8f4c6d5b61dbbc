"""torch.compile(..., backend="pruner") and pruner.torch.export. Needs torch 2.11 or newer; PRUNER says
where the program is. The staleness of weights, strides, aliases, shapes, threads and fork are what
other backends have got wrong."""

import copy
import gc
import logging
import os
import sys
import tempfile
import threading
import unittest

from recent_torch import torch  # first: it finds the package, too
from torch import nn

import pruner.torch
from pruner.torch import backend

FOLDER = tempfile.TemporaryDirectory()
LOG = logging.getLogger("pruner.torch")


def compiled(model, **options):
    torch._dynamo.reset()
    chosen = {"cache_dir": FOLDER.name, "min_nodes": 1, **options}
    return torch.compile(model, backend=backend, options=chosen)


class Perceptron(nn.Module):
    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class Case(unittest.TestCase):
    def setUp(self):
        pruner.torch.runtime.warn_once.cache_clear()
        torch.manual_seed(1)
        self.x = torch.randn(4, 16)

    def agrees(self, fast, slow, *args, share=1e-4):
        with torch.no_grad():
            found, wanted = fast(*args), slow(*args)
        self.same(found, wanted, share)
        return found

    def same(self, found, wanted, share=1e-4):
        if isinstance(wanted, torch.Tensor):
            self.assertEqual(found.dtype, wanted.dtype)
            self.assertEqual(found.shape, wanted.shape)
            torch.testing.assert_close(found, wanted, rtol=share, atol=share, equal_nan=True)
            return
        self.assertEqual(len(found), len(wanted))
        for each in zip(found, wanted):
            self.same(*each, share)

    def in_eager(self):
        """What is logged that stays in eager."""
        return self.assertLogs(LOG, logging.WARNING)

    def all_compiled(self):
        return self.assertNoLogs(LOG, logging.WARNING)


class Weights(Case):
    """Whether the compiled callable sees a change of weights: always."""

    def setUp(self):
        super().setUp()
        self.model = Perceptron()
        self.fast = compiled(self.model)
        self.agrees(self.fast, self.model, self.x)

    def test_changed_in_place(self):
        with torch.no_grad():
            self.model.first.weight.mul_(2)
        self.agrees(self.fast, self.model, self.x)

    def test_changed_by_an_optimizer(self):
        loss = self.model(self.x).square().sum()
        loss.backward()
        torch.optim.SGD(self.model.parameters(), lr=0.1).step()
        self.agrees(self.fast, self.model, self.x)

    def test_loaded(self):
        self.model.load_state_dict(Perceptron(7).state_dict())
        self.agrees(self.fast, self.model, self.x)

    def test_new_parameter(self):
        self.model.first.weight = nn.Parameter(torch.randn(32, 16))
        self.agrees(self.fast, self.model, self.x)

    def test_new_layer(self):
        self.model.second = nn.Linear(32, 8)
        self.agrees(self.fast, self.model, self.x)

    def test_second_instance(self):
        other = Perceptron(5)
        fast = torch.compile(
            other, backend=backend, options={"cache_dir": FOLDER.name, "min_nodes": 1}
        )
        for _ in range(3):
            self.agrees(fast, other, self.x)
            self.agrees(self.fast, self.model, self.x)

    def test_deep_copy(self):
        other = copy.deepcopy(self.model)
        with torch.no_grad():
            other.first.bias.add_(3)
        self.agrees(compiled(other), other, self.x)

    def test_changed_all_the_time(self):
        with self.in_eager() as logs:
            for _ in range(8):
                with torch.no_grad():
                    self.model.first.weight.add_(0.1)
                self.agrees(self.fast, self.model, self.x)
        self.assertEqual(len([m for m in logs.output if "are inputs" in m or "inputs of its" in m]), 1)

    def test_changed_in_data(self):
        self.model.first.weight.data = torch.randn(32, 16)
        self.agrees(self.fast, self.model, self.x)


    def test_made_in_inference_mode(self):
        """Torch does not count what is written to such weights."""
        with torch.inference_mode():
            model = Perceptron()
            fast = compiled(model)
            with self.in_eager() as logs:
                self.same(fast(self.x), model(self.x))
            self.assertIn("made in inference_mode", "\n".join(logs.output))
            for _ in range(3):
                model.first.weight.mul_(2)
                self.same(fast(self.x), model(self.x))

    def test_as_inputs(self):
        model = Perceptron()
        fast = compiled(model, weights="inputs")
        with self.all_compiled():
            for _ in range(6):
                model.first.weight.data.mul_(1.5)
                self.agrees(fast, model, self.x)


class Results(Case):
    def test_are_not_those_of_the_run_before(self):
        model = Perceptron()
        fast = compiled(model)
        with torch.no_grad():
            first = fast(self.x)
            kept = first.clone()
            fast(self.x + 1)
        torch.testing.assert_close(first, kept)

    def test_of_views_and_inputs(self):
        def f(x):
            y = torch.relu(x) * 2 + 1
            return x, y, y.view(-1), y.t(), x.view(16, 4)

        fast = compiled(f)
        for found, wanted in zip(self.agrees(fast, f, self.x), f(self.x)):
            self.assertEqual(found.stride(), wanted.stride())

    def test_have_eagers_strides(self):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).to(memory_format=torch.channels_last)
        x = torch.randn(2, 3, 9, 9).to(memory_format=torch.channels_last)
        found = self.agrees(compiled(model), model, x)
        with torch.no_grad():
            self.assertEqual(found.stride(), model(x).stride())

    def test_of_inputs_that_lie_anyhow(self):
        model = Perceptron()
        fast = compiled(model)
        self.agrees(fast, model, torch.randn(16, 4).t())
        self.agrees(fast, model, torch.randn(4, 32)[:, ::2])
        self.agrees(fast, model, torch.randn(5, 16)[1:])

    def test_of_buffers_that_change(self):
        class Counts(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("seen", torch.zeros(16))

            def forward(self, x):
                self.seen.add_(x.sum(0))
                return torch.relu(x) + self.seen

        slow, fast_model = Counts(), Counts()
        fast = compiled(fast_model)
        with torch.no_grad():
            for _ in range(3):
                self.same(fast(self.x), slow(self.x))
        self.same(fast_model.seen, slow.seen)

    def test_of_nothing_known_stay_in_eager(self):
        def f(x):
            y = torch.relu(x) @ x.t()
            return torch.linalg.inv(y + 9 * torch.eye(4)) @ torch.tanh(y) + 1

        with self.in_eager() as logs:
            self.agrees(compiled(f), f, self.x, share=1e-3)
        self.assertIn("linalg_inv", " ".join(logs.output))
        with self.assertRaisesRegex(Exception, "linalg_inv"):
            compiled(f, fallback=False)(self.x)

    def test_of_draws_stay_random(self):
        f = lambda x: torch.relu(x) + torch.rand(4, 16)  # noqa: E731
        with torch.no_grad(), self.in_eager():
            fast = compiled(f)
            self.assertFalse(torch.equal(fast(self.x), fast(self.x)))


    def test_of_dropout_while_training_stay_random(self):
        model = nn.Sequential(nn.Linear(16, 64), nn.Dropout(0.5), nn.ReLU()).train()
        fast = compiled(model)
        with torch.no_grad():
            self.assertFalse(torch.equal(fast(self.x), fast(self.x)))
            model.eval()
            self.same(fast(self.x), model(self.x))


class Verify(Case):
    """A wrong module is found by eager on the module as it was written, and eager's results are returned."""

    def wrong_row(self, name, row):
        operators = sys.modules["pruner.torch.operators"]
        right = operators._ROWS[name]
        operators._ROWS[name] = row
        self.addCleanup(operators._ROWS.__setitem__, name, right)

    def found_wrong(self, f, *args, cache="wrong", **options):
        with tempfile.TemporaryDirectory() as folder:
            fast = compiled(f, cache_dir=folder, **options)
            with self.in_eager() as logs, torch.no_grad():
                self.same(fast(*args), f(*args))
                self.same(fast(*args), f(*args))
            self.assertRegex("\n".join(logs.output), "outputs differ from eager's")
            with torch.no_grad(), self.assertRaisesRegex(Exception, "outputs differ from eager's"):
                compiled(f, cache_dir=folder, fallback=False, **options)(*args)

    def test_finds_a_wrong_row(self):
        self.wrong_row("aten.tanh.default", lambda g, node, x: g.op("Sin", g.value(x)))
        self.found_wrong(lambda x: torch.tanh(x) + 1, self.x)

    def test_finds_a_wrong_decomposition(self):
        """One that the graph of AOT autograd shares with the module."""
        wrong = {**pruner.torch.decompositions(), torch.ops.aten.log2.default: torch.log10}
        right, pruner.torch.decompositions = pruner.torch.decompositions, lambda: wrong
        self.addCleanup(setattr, pruner.torch, "decompositions", right)
        self.found_wrong(lambda x: torch.log2(x.abs() + 1) * 2, self.x)

    def test_finds_wrong_small_elements(self):
        def off_by_little(g, node, x):
            return g.op("Add", g.op("Exp", g.value(x)), g.scalar(0.05, g.dtype(node)))

        self.wrong_row("aten.exp.default", off_by_little)
        self.found_wrong(torch.exp, torch.tensor([10.0, -1.0, -2.0]))

    def test_finds_wrong_integers(self):
        self.wrong_row("aten.argmax.default", lambda g, node, x, *_: g.full(g.shape(node), 0, torch.int64))
        self.found_wrong(lambda x: torch.relu(x).argmax(-1), self.x)

    def test_leaves_the_buffers_that_eager_leaves(self):
        class Counts(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("seen", torch.zeros(16))

            def forward(self, x):
                self.seen.add_(torch.tanh(x).sum(0))
                return torch.relu(x) + self.seen

        self.wrong_row("aten.tanh.default", lambda g, node, x: g.op("Sin", g.value(x)))
        slow, fast_model = Counts(), Counts()
        with tempfile.TemporaryDirectory() as folder, torch.no_grad(), self.in_eager():
            fast = compiled(fast_model, cache_dir=folder)
            for _ in range(3):
                self.same(fast(self.x), slow(self.x))
        self.same(fast_model.seen, slow.seen)

    def test_compares_again_if_it_is_told_to(self):
        """A change through .data cannot be seen; comparing sees what it does, at call 2, 4, 8 or later."""
        verify = sys.modules["pruner.torch.verify"]
        share, verify._SHARE_OF_TIME = verify._SHARE_OF_TIME, 100.0  # nothing of the test takes long
        self.addCleanup(setattr, verify, "_SHARE_OF_TIME", share)
        model = Perceptron()
        fast = compiled(model, verify="repeatedly")
        self.agrees(fast, model, self.x)
        model.first.weight.data.mul_(2)
        with self.in_eager() as logs, torch.no_grad():
            for _ in range(4):
                found = fast(self.x)
        self.assertRegex("\n".join(logs.output), r"outputs differ from eager's at call \d+: output 0, element")
        self.same(found, model(self.x))
        with self.assertRaisesRegex(ValueError, 'verify is "often", expected True, False or "repeatedly"'):
            pruner.torch.Options(verify="often")

    def test_attention_without_dropout_is_compared(self):
        """torch tags attention as drawing random numbers, which it does with dropout alone."""
        verify = sys.modules["pruner.torch.verify"]
        for share, comparisons in ((0.0, 1), (0.5, 0)):
            graph = torch.fx.Graph()
            q = graph.placeholder("q")
            attention = torch.ops.aten.scaled_dot_product_attention.default
            graph.output((graph.call_function(attention, (q, q, q, None, share)),))
            gm = torch.fx.GraphModule({}, graph)
            watch = verify.Watch(gm, True, True)
            self.assertEqual(watch.watches(graph), comparisons == 1)
            call = watch.around(lambda x, run=gm: list(run(x)))
            call(torch.randn(1, 2, 3, 4))
            self.assertEqual(watch.comparisons, comparisons)

    def test_repeated_comparisons_are_few(self):
        from pruner.torch import verify

        gm = torch.fx.symbolic_trace(lambda x: (torch.relu(x),))
        watch = verify.Watch(gm, "repeatedly", True)
        watch.watches(torch.fx.Graph())
        call = watch.around(lambda x: [torch.relu(x)])
        watch._start_s = -1e6  # enough time for all of them
        for _ in range(3000):
            call(self.x)
        self.assertEqual(watch.comparisons, 11)  # calls 1, 2, 4 ... 1,024


class Lifetime(Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def modules(self):
        return [os.path.join(at, name) for at, _, files in os.walk(self.folder) for name in files if name.endswith(".so")]

    def test_what_the_cache_cannot_give_is_compiled_again(self):
        model = Perceptron()
        self.agrees(compiled(model, cache_dir=self.folder), model, self.x)
        (path,) = self.modules()
        with open(path, "rb") as file:
            whole = file.read()
        for content in (b"", b"hello", b"\x7fELF" + bytes(2000), whole[: len(whole) // 2]):
            torch._dynamo.reset()
            gc.collect()  # what is loaded comes from memory
            os.remove(path)
            with open(path, "wb") as file:
                file.write(content)
            pruner.torch.runtime.warn_once.cache_clear()
            with self.in_eager() as logs:
                self.agrees(compiled(model, cache_dir=self.folder, fallback=False), model, self.x)
            self.assertRegex("\n".join(logs.output), "a module of the cache cannot be used and is compiled again")

    @unittest.skipUnless(os.path.exists("/proc/self/maps"), "Linux says what is mapped")
    def test_a_model_that_is_dropped_is_unloaded(self):
        def mapped():
            with open("/proc/self/maps") as maps:
                return {line.split()[-1] for line in maps if self.folder in line}

        model = Perceptron()
        fast = compiled(model, cache_dir=self.folder)
        self.agrees(fast, model, self.x)
        self.assertEqual(mapped(), set(self.modules()))
        del fast, model
        torch._dynamo.reset()
        gc.collect()
        self.assertEqual(mapped(), set())

    def test_a_module_is_of_a_cpu_and_a_number_of_threads(self):
        model = Perceptron()
        self.agrees(compiled(model, cache_dir=self.folder), model, self.x)
        self.agrees(compiled(model, cache_dir=self.folder, threads=1), model, self.x)
        right = pruner.torch.runtime._features
        pruner.torch.runtime._features = lambda: "another CPU"
        self.addCleanup(setattr, pruner.torch.runtime, "_features", right)
        self.agrees(compiled(model, cache_dir=self.folder, threads=1), model, self.x)
        self.assertEqual(len(self.modules()), 3)

    def test_a_module_whose_file_is_gone_is_compiled_again(self):
        runtime = pruner.torch.runtime
        model = Perceptron()
        fast = compiled(model, cache_dir=self.folder)
        self.agrees(fast, model, self.x)
        most, runtime._LOADED.most = runtime._LOADED.most, 1
        self.addCleanup(setattr, runtime._LOADED, "most", most)
        other = Perceptron(5)
        second = torch.compile(other, backend=backend, options={"cache_dir": self.folder, "min_nodes": 1})
        self.agrees(second, other, self.x)  # takes the place of the first
        for path in self.modules():
            os.remove(path)
        with self.in_eager() as logs:
            self.agrees(fast, model, self.x)
        self.assertIn("a module is compiled again", "\n".join(logs.output))

    def test_a_thousand_modules_keep_to_the_bound(self):
        runtime = pruner.torch.runtime
        model = Perceptron()
        wanted = self.agrees(compiled(model, cache_dir=self.folder), model, self.x)
        (path,) = self.modules()
        with open(path, "rb") as file:
            whole = file.read()
        most, runtime._LOADED.most = runtime._LOADED.most, 20
        self.addCleanup(setattr, runtime._LOADED, "most", most)
        bindings = []
        for i in range(1000):
            each = os.path.join(self.folder, f"copy_{i}.so")
            with open(each, "wb") as file:
                file.write(whole)
            bindings.append(runtime._Binding(each, None, [0], 1))
            bindings[-1].give_back(bindings[-1].take())
            self.assertLessEqual(len(runtime._LOADED), 20)
        for i in (0, 500, 999):  # those that are unloaded come again
            module, found = bindings[i].take(), torch.empty(4, 8)
            module.run_pointers([self.x.data_ptr()], [found.data_ptr()])
            self.same(found, wanted)
        if os.path.exists("/proc/self/maps"):
            with open("/proc/self/maps") as maps:
                mapped = {line.split()[-1] for line in maps if "copy_" in line}
            self.assertLessEqual(len(mapped), 20)


class Shapes(Case):
    def test_of_several_batches(self):
        model = Perceptron()
        fast = compiled(model)
        for batch in (4, 1, 3, 7, 4, 3):
            self.agrees(fast, model, torch.randn(batch, 16))


class Hosts(Case):
    def test_threads_run_at_once(self):
        model = Perceptron()
        fast = compiled(model)
        self.agrees(fast, model, self.x)
        wrong = []

        def work(seed):
            x = torch.randn(4, 16, generator=torch.Generator().manual_seed(seed))
            with torch.no_grad():
                wanted = model(x)
                for _ in range(50):
                    if not torch.allclose(fast(x), wanted, atol=1e-4):
                        wrong.append(seed)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_fork_runs(self):
        model = Perceptron()
        fast = compiled(model)
        wanted = self.agrees(fast, model, self.x)
        child = os.fork()
        if child == 0:
            with torch.no_grad():
                os._exit(0 if torch.allclose(fast(self.x), wanted, atol=1e-4) else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_training_goes_on_in_eager(self):
        model = Perceptron()
        fast = compiled(model)
        fast(self.x).sum().backward()
        found = model.first.weight.grad.clone()
        model.zero_grad()
        model(self.x).sum().backward()
        torch.testing.assert_close(found, model.first.weight.grad)

    def test_training_in_eager_is_said(self):
        with self.in_eager() as logs:
            fast = compiled(Perceptron())
            for batch in (4, 5, 6):
                fast(torch.randn(batch, 16))
        self.assertEqual(len(logs.output), 1)
        self.assertIn("gradients are recorded", logs.output[0])
        with self.assertRaisesRegex(Exception, "gradients are recorded"):
            compiled(Perceptron(), fallback=False)(self.x)

    def test_a_reason_is_said_once(self):
        f = lambda x: torch.linalg.inv(torch.relu(x) @ x.mT + 9 * torch.eye(3)) * 2  # noqa: E731
        fast = compiled(f)
        with self.in_eager() as logs, torch.no_grad():
            for batch in (2, 3, 4, 5):
                fast(torch.randn(batch, 3, 8))
        self.assertEqual(len([each for each in logs.output if "linalg_inv" in each]), 1)

    def test_unknown_options(self):
        with self.assertRaisesRegex(Exception, "there are"):
            compiled(Perceptron(), nothing=1)(self.x)

    def test_subnormal_numbers_are_zeros_or_kept(self):
        with self.assertRaisesRegex(ValueError, 'denormals is "off", expected "flush" or "keep"'):
            pruner.torch.Options(denormals="off")

    def test_a_budget_needs_a_unit(self):
        for budget in (3, "3", "soon"):
            with self.assertRaisesRegex(ValueError, 'expected a time with its unit: "30s", "3m" or "1h"'):
                pruner.torch.Options(budget=budget)
        pruner.torch.Options(budget="1h30m")

    def test_tunes_while_it_runs(self):
        model = Perceptron()
        with tempfile.TemporaryDirectory() as folder:
            fast = compiled(model, cache_dir=folder, budget="2s", wait=True)
            self.agrees(fast, model, self.x)
            found = [name for _, _, files in os.walk(folder) for name in files]
            self.assertIn("records.json", found)
            self.agrees(fast, model, self.x)


class Devices(Case):
    """A module reads the CPU's memory: tensors that lie elsewhere are not handed to it."""

    @staticmethod
    def product(x):
        return torch.relu(x @ x.T) + 1

    def test_a_graph_of_another_device_stays_in_eager(self):
        x = torch.empty(400, 400, device="meta")
        with self.in_eager() as log, torch.inference_mode():
            found = compiled(self.product)(x)
            linear = compiled(nn.Linear(64, 64).eval().to("meta"), verify=False)
            self.assertEqual(linear(torch.empty(2, 64, device="meta")).device.type, "meta")
        self.assertEqual((found.device.type, found.shape), ("meta", (400, 400)))
        self.assertIn("on the device meta", "\n".join(log.output))

    def test_without_eager_it_is_an_error(self):
        with self.assertRaisesRegex(Exception, "on the device meta"):
            with torch.inference_mode():
                compiled(self.product, fallback=False)(torch.empty(4, 4, device="meta"))

    def test_the_parts_on_the_cpu_are_compiled(self):
        def both(x):
            return torch.relu(x) * 2 + 1, torch.relu(x.to("meta")) * 2

        with self.in_eager(), torch.no_grad():
            here, there = compiled(both)(self.x)
        self.same(here, torch.relu(self.x) * 2 + 1)
        self.assertEqual(there.device.type, "meta")

    def test_a_compiled_graph_names_the_input(self):
        from torch.fx.experimental.proxy_tensor import make_fx

        weights = torch.randn(8, 16)
        gm = make_fx(lambda a, b: [torch.relu(a @ b.T) + 1], tracing_mode="fake")(self.x, weights)
        options = pruner.torch.Options(cache_dir=FOLDER.name, min_nodes=1)
        graph = pruner.torch.CompiledGraph(gm, [1], options)
        self.same(graph(self.x, weights)[0], torch.relu(self.x @ weights.T) + 1)
        for elsewhere, what in ((self.x.to("meta"), "is on the device meta"),
                                (self.x.to_sparse(), "has the layout torch.sparse_coo")):  # fmt: skip
            with self.assertRaisesRegex(ValueError, f"the input a_1 {what}"):
                graph(elsewhere, weights)
        # Elements that a view says are to be negated: memory does not say it.
        self.same(graph(torch._neg_view(self.x), weights)[0], torch.relu(-self.x @ weights.T) + 1)

    def test_a_module_names_the_input(self):
        module = pruner.compile(Perceptron(), args=(self.x,))
        name = module.inputs[0].name
        for elsewhere, what in ((self.x.to("meta"), "is on the device meta"),
                                (self.x.to_sparse(), "has the layout torch.sparse_coo")):  # fmt: skip
            with self.assertRaisesRegex(ValueError, f"^{name} {what}"):
                module(elsewhere)
        out = module.outputs[0].name
        for wrong, what in ((torch.empty(4, 8, device="meta"), f"out: {out} is on the device meta"),
                            (torch.empty(4, 8, dtype=torch.float64), "out: expected"),
                            (torch.empty(8, 4), "out: expected"),
                            (torch.empty(8, 4).T, "out: expected")):  # fmt: skip
            with self.assertRaisesRegex(ValueError, what):
                module(self.x, out=[wrong])


class Operators(Case):
    def agree(self, functions, *args, share=1e-4):
        for name, f in functions.items():
            with self.subTest(name):
                if name.startswith("eager"):
                    self.agrees(compiled(f), f, *args, share=share)
                    continue
                with self.all_compiled():
                    self.agrees(compiled(f), f, *args, share=share)

    def test_by_element(self):
        x, y = torch.randn(3, 5, 7), torch.rand(5, 7) + 0.5
        F = nn.functional
        self.agree({
            "unary": lambda x, y: [torch.exp(x), torch.log(y), torch.sqrt(y), torch.rsqrt(y), torch.tanh(x),
                                   torch.sin(x), torch.cos(x), torch.erf(x), x.abs(), -x, x.floor(), x.ceil(),
                                   x.round(), x.trunc(), x.sign(), torch.log1p(y), torch.expm1(x), x.square(),
                                   torch.log2(y), torch.reciprocal(y), torch.atan(x)],
            "activations": lambda x, y: [F.relu(x), F.silu(x), F.gelu(x), F.gelu(x, approximate="tanh"),
                                         F.leaky_relu(x, 0.2), F.elu(x), F.hardswish(x), F.hardsigmoid(x),
                                         F.hardtanh(x), F.relu6(x), F.softplus(x), F.mish(x), F.sigmoid(x)],
            "binary": lambda x, y: [x + y, x - y, x * y, x / y, 3 - x, 2 / y, torch.maximum(x, y), x ** 2, y ** 1.5,
                                    torch.minimum(x, y), torch.add(x, y, alpha=3), x % 0.7, torch.remainder(x, y),
                                    torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc"),
                                    torch.pow(2.0, x), y ** 0.5, torch.sub(x, y, alpha=2)],
            "truth": lambda x, y: [x > y, x <= 0.1, x == x, x != y, (x > 0) & (y > 1), (x > 0) | (y > 1), ~(x > 0),
                                   torch.logical_not(x > 0), torch.where(x > 0, x, y), x.masked_fill(x > 0, -1.0),
                                   torch.isnan(x), torch.clamp(x, -0.5, 0.5), x.clamp(min=0.1), x.clamp(max=0.1),
                                   torch.where(x > 0, x, 0.0), (x > 0).any(-1), (x > 0).all(), (x > 0).any((0, 2))],
            "casts": lambda x, y: [x.to(torch.float64), x.to(torch.int32), (x > 0).float(), x.half().float(), x.long(),
                                   (x * 10).to(torch.int64) // 3, (x * 10).to(torch.int64) % 3, x.to(torch.int64) + 1],
        }, x, y)  # fmt: skip

    def test_of_shapes(self):
        x = torch.randn(2, 4, 6, 8)
        F = nn.functional
        self.agree({
            "moved": lambda x: [x.permute(0, 2, 3, 1), x.transpose(1, 2), x.reshape(2, 4, 48), x.flatten(1), x[:, 1:3],
                                x[:, -1], x[..., ::2], x.unsqueeze(1), x[:1].squeeze(0), x.flip(-1), x[:, None, 0],
                                x.roll(2, -1), x.roll((1, -2), (1, 3)), x.expand(3, 2, 4, 6, 8), x.repeat(1, 2, 1, 1)],
            "parted": lambda x: [*x.split(3, -1), *x.chunk(2, 1), torch.cat([x, x * 2], 1), torch.stack([x, x + 1], 2),
                                 *x.unbind(1), x.narrow(1, 1, 2)],
            "padded": lambda x: [F.pad(x, (1, 2)), F.pad(x, (1, 2, 3, 0), value=1.5), F.pad(x, (1, 1, 2, 2), "reflect"),
                                 F.pad(x, (-1, 0)), F.pad(x, (2, 1, 1, 1), "replicate")],
            "made": lambda x: [x + torch.arange(8), torch.zeros_like(x) + x, torch.full((8,), 2.0) * x,
                               torch.ones_like(x) + x, x.tril(), x.triu(1), x.new_zeros(8) + x],
            "pixels": lambda x: [F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2)],
        }, x)  # fmt: skip

    def test_of_indices(self):
        x, i = torch.randn(5, 6, 7), torch.tensor([[0, 3, 1], [4, 4, -1]])
        w = torch.randn(9, 4)
        self.agree({
            "rows": lambda x, i, w: [x[i], x[:, i], torch.index_select(x, 1, i[0]), nn.functional.embedding(i % 5, w),
                                     x[i[0], i[1]], x[:, i[0], i[1] % 7], x.gather(1, (i % 5)[:, :, None].expand(2, 3, 7))],
            "best": lambda x, i, w: [x.argmax(-1), x.argmin(1, keepdim=True), x.max(-1), x.min(0), x.topk(3, -1),
                                     x.argmax()],
        }, x, i, w)  # fmt: skip

    def test_of_reductions(self):
        x = torch.randn(3, 4, 5) + 1
        self.agree({
            "sums": lambda x: [x.sum(), x.sum(-1), x.mean((0, 2)), x.mean(), x.amax(1, True), x.amin(), x.prod(1),
                               x.var(-1), x.var(-1, correction=0), x.std(1), *torch.var_mean(x, (0, 1), keepdim=True),
                               x.cumsum(1), x.norm(dim=-1), (x > 0).sum(), x.logsumexp(-1), x.max(), x.min()],
            "softmax": lambda x: [x.softmax(-1), x.softmax(0), x.log_softmax(1)],
        }, x)  # fmt: skip

    def test_of_products(self):
        a, b, c = torch.randn(2, 3, 4), torch.randn(2, 4, 5), torch.randn(5)
        self.agree({
            "products": lambda a, b, c: [a @ b, a @ b[0], torch.baddbmm(c, a, b, beta=0.5, alpha=2), a[0] @ b[1],
                                         torch.addmm(c, a[0], b[0]), b @ c, torch.einsum("bij,bjk->bik", a, b)],
        }, a, b, c)  # fmt: skip

    def test_of_windows(self):
        x = torch.randn(2, 4, 12, 12)
        w, t = torch.randn(6, 2, 3, 3), torch.randn(4, 3, 3, 3)
        F = nn.functional
        self.agree({
            "convolutions": lambda x, w, t: [F.conv2d(x, w, groups=2, stride=2, padding=1), F.conv2d(x[:, :2], w, dilation=2),
                                             F.conv_transpose2d(x, t, stride=2, output_padding=1), F.conv1d(x[0], w[:, :, 0].repeat(1, 6, 1))],
            "pools": lambda x, w, t: [F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2),
                                      F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (3, 4)),
                                      F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), F.max_pool2d(x, 3, 2, ceil_mode=True)],
            "sizes": lambda x, w, t: [F.interpolate(x, scale_factor=2), F.interpolate(x, (7, 20)),
                                      F.interpolate(x, (20, 24), mode="bilinear"), F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=True),
                                      F.interpolate(x, scale_factor=0.5, mode="bilinear"), F.interpolate(x, (24, 24), mode="bicubic")],
            "norms": lambda x, w, t: [F.layer_norm(x, (12,)), F.layer_norm(x, (12, 12), eps=1e-3), F.group_norm(x, 2),
                                      F.batch_norm(x, torch.ones(4), torch.ones(4)), F.rms_norm(x, (12,)), F.instance_norm(x)],
        }, x, w, t, share=1e-3)  # fmt: skip

    def test_of_nearest_sizes_where_an_extent_stays(self):
        x = torch.randn(1, 2, 5, 6)
        F = nn.functional
        self.agree({
            "sizes": lambda x: [F.interpolate(x, scale_factor=(1.1, 1.7)), F.interpolate(x, scale_factor=1.1),
                                F.interpolate(x[0], scale_factor=1.1), F.interpolate(x, scale_factor=(1.1, 1.4), mode="bilinear"),
                                F.interpolate(x[None], scale_factor=(1.1, 1.3, 1.0))],
        }, x)  # fmt: skip

    def test_of_autocast(self):
        class Images(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.norm, self.last = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 5)

            def forward(self, x):
                return self.last(torch.relu(self.norm(self.conv(x))).mean((2, 3)))

        class Words(nn.Module):
            """The result is float32, computed from products of 16-bit numbers."""

            def __init__(self):
                super().__init__()
                self.norm, self.layers = nn.LayerNorm(64), nn.ModuleList(nn.Linear(64, 64) for _ in range(16))

            def forward(self, x):
                for layer in self.layers:
                    x = x + nn.functional.silu(layer(self.norm(x)))
                return x.float()

        for model, x in ((Images().eval(), torch.randn(2, 3, 9, 9)), (Words().eval(), torch.randn(7, 64))):
            for dtype in (torch.bfloat16, torch.float16):
                with self.subTest(f"{type(model).__name__}, {dtype}"), torch.autocast("cpu", dtype):
                    with self.all_compiled():
                        self.agrees(compiled(model), model, x, share=5e-2)

    def test_of_attention(self):
        q, k = torch.randn(2, 4, 9, 8), torch.randn(2, 4, 9, 8)
        mask = torch.rand(2, 1, 9, 9) > 0.3
        F = nn.functional
        self.agree({
            "attention": lambda q, k, m: [F.scaled_dot_product_attention(q, k, k), F.scaled_dot_product_attention(q, k, k, is_causal=True),
                                          F.scaled_dot_product_attention(q, k, k, attn_mask=m), F.scaled_dot_product_attention(q, k, k, scale=0.3),
                                          F.scaled_dot_product_attention(q, k, k, attn_mask=m.float())],
            "eager: one without four dimensions": lambda q, k, m: F.scaled_dot_product_attention(q[0], k[0], k[0]) + 1,
            "eager: other keys": lambda q, k, m: F.scaled_dot_product_attention(q[:, :, :4], k, k, is_causal=True) * 2,
        }, q, k, mask)  # fmt: skip

    def test_are_eighty_or_more(self):
        self.assertGreaterEqual(len({name.split(".")[1] for name in pruner.torch.operators()}), 80)


class Export(Case):
    def test_of_a_model_and_of_a_program(self):
        model = Perceptron().eval()
        program = torch.export.export(model, (self.x,))
        for each in (model, program):
            path = os.path.join(FOLDER.name, "exported.so")
            pruner.torch.export(each, path, (self.x,))
            (found,) = pruner.Module(path)(self.x)
            with torch.no_grad():
                torch.testing.assert_close(torch.from_numpy(found), model(self.x), rtol=1e-4, atol=1e-4)

    def test_says_what_has_no_form(self):
        class Inverse(nn.Module):
            def forward(self, x):
                return torch.linalg.inv(x)

        with self.assertRaisesRegex(NotImplementedError, "linalg_inv"):
            pruner.torch.export(Inverse(), os.path.join(FOLDER.name, "no.so"), (torch.eye(3),))

    def test_tensors_go_in_and_out_in_place(self):
        module = pruner.compile(Perceptron(), args=(self.x,))
        out = torch.empty(4, 8)
        module(self.x, out=[out])
        with torch.no_grad():
            torch.testing.assert_close(out, Perceptron()(self.x), rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
