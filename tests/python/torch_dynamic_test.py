"""torch.compile(..., backend="pruner") of graphs whose shapes have symbols: modules of ranges, at each shape against
eager. Needs torch 2.11 or newer; PRUNER says where the program is."""

import glob
import logging
import os
import tempfile
import unittest

from recent_torch import torch  # first: it finds the package, too
import torch.nn.functional as F
from torch import nn

import pruner.torch
from pruner.torch import backend

LOG = logging.getLogger("pruner.torch")
EXTENTS = (5, 3, 8, 4, 7, 6)


class Encoder(nn.Module):
    """A layer over words and their positions, that says how many there are."""

    def __init__(self, width=32, heads=2):
        super().__init__()
        torch.manual_seed(0)
        self.heads = heads
        self.words, self.places = nn.Embedding(50, width), nn.Embedding(64, width)
        self.norm, self.three, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, ids):
        batch, length = ids.shape
        x = self.words(ids) + self.places(torch.arange(length))
        parts = self.three(self.norm(x)).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(heads.transpose(1, 2).reshape(batch, length, -1))
        return x, x[:, -1], batch * length


torch.manual_seed(0)
CONV, ALONG = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv1d(6, 4, 4, 2)
ROWS = lambda n: (torch.randn(2, n, 6),)  # noqa: E731
IMAGE = lambda n: (torch.randn(1, 3, n + 2, n + 3),)  # noqa: E731


def padded_to_four(x):
    return F.pad(x, (0, 0, 0, -x.shape[1] % 4)) + 1


def positions(x):
    return x + torch.arange(x.shape[1])[None, :, None] / x.shape[1]


def counted(x):
    length = x.shape[1]
    down, floats = torch.arange(length - 1, -1, -1), torch.arange(0, 2 * length, 2, dtype=torch.float32)
    return x[:, down] * floats[:, None] + torch.scalar_tensor(length)


def masked(x):
    places = torch.arange(x.shape[1])
    scores = torch.where(places[:, None] >= places, x @ x.transpose(1, 2), torch.tensor(0.0))
    return scores + torch.full((x.shape[1], x.shape[1]), 2.0).triu(1)


def written(x):
    y = x.clone()
    y[:, 1:3] = 0
    return y


# What is computed, and the inputs for an extent: each a form that the rows of operators.py have for symbols.
FUNCTIONS = {
    "parts": (lambda x: torch.cat([x[:, 1:] - x[:, :-1], x[:, x.shape[1] // 2 :], x[:, -1:]], 1), ROWS),
    "every_other": (lambda x: x[:, ::2] + 1, ROWS),
    "turned": (lambda x: torch.roll(x.flip(1), 1, 1) + x.repeat(1, 2, 1)[:, : x.shape[1]], ROWS),
    "padded": (padded_to_four, ROWS),
    "halves": (lambda x: torch.mul(*torch.cat([x, x], 1).chunk(2, 1)), ROWS),
    "positions": (positions, ROWS),
    "counted": (counted, ROWS),
    "masked": (masked, ROWS),
    "moments": (lambda x: (x.mean(1) + x.sum(1) / x.shape[1], x.var(1), x.std(), x.cumsum(1), x.argmax(1)), ROWS),
    "joined": (lambda x: (torch.relu(x.flatten(0, 1)), x.shape[1] * 3), ROWS),
    "written": (written, ROWS),
    "cached": (lambda x, k: torch.cat([k, x], 1) @ x.transpose(1, 2), lambda n: (torch.randn(2, 1, 6), *ROWS(n))),
    "of_two": (lambda x, y: torch.softmax(x @ y.transpose(1, 2), -1) @ y, lambda n: ROWS(n) + ROWS(2 * n)),
    "windows": (lambda x: torch.relu(ALONG(x.transpose(1, 2))), lambda n: ROWS(n + 2)),
    "image": (lambda x: F.adaptive_avg_pool2d(F.max_pool2d(F.relu(CONV(x)), 3, 2, 1), 1), IMAGE),
    "doubled": (lambda x: F.interpolate(x, scale_factor=2) + F.interpolate(x, scale_factor=2, mode="bilinear"), IMAGE),
}


class Case(unittest.TestCase):
    def setUp(self):
        pruner.torch.runtime.warn_once.cache_clear()
        torch._dynamo.reset()
        torch.manual_seed(1)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def compiled(self, model, **how):
        chosen = {"cache_dir": self.folder, "min_nodes": 1}
        return torch.compile(model, backend=backend, options=chosen, **how)

    def modules(self):
        return len(glob.glob(os.path.join(self.folder, "*", "*.so")))

    def agrees(self, fast, slow, *args):
        with torch.no_grad():
            found, wanted = fast(*args), slow(*args)
        one = isinstance(wanted, torch.Tensor)
        for x, y in zip([found] if one else found, [wanted] if one else wanted):
            if isinstance(y, torch.Tensor):
                self.assertEqual((x.dtype, x.stride()), (y.dtype, y.stride()))
                torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-4)
            else:
                self.assertEqual(x, y)


class Ranges(Case):
    def test_are_one_module_each(self):
        model = Encoder()
        fast = self.compiled(model, dynamic=True)
        with self.assertNoLogs(LOG, logging.WARNING):
            for batch, length in ((2, 5), (3, 8), (8, 2), (2, 7), (5, 6)):
                self.agrees(fast, model, torch.randint(0, 50, (batch, length)))
            self.assertEqual(self.modules(), 1)
            for length in (9, 16, 12, 5):
                self.agrees(fast, model, torch.randint(0, 50, (2, length)))
        self.assertEqual(self.modules(), 2)

    def test_begin_and_end_where_the_user_says(self):
        model = Encoder()
        fast = self.compiled(model)
        for length in (12, 10, 20):
            ids = torch.randint(0, 50, (2, length))
            torch._dynamo.mark_dynamic(ids, 1, min=10, max=20)
            self.agrees(fast, model, ids)
        self.assertEqual(self.modules(), 2)

    def test_of_weights_that_change(self):
        model = Encoder()
        fast = self.compiled(model, dynamic=True)
        self.agrees(fast, model, torch.randint(0, 50, (2, 5)))
        with torch.no_grad():
            model.out.weight.mul_(2)
        self.agrees(fast, model, torch.randint(0, 50, (2, 6)))

    def test_of_what_has_no_range_are_modules_of_one_shape(self):
        def scaled(x):
            return x * x.shape[1] ** -0.5

        fast = self.compiled(scaled, dynamic=True)
        with self.assertLogs(LOG, logging.WARNING) as logs:
            for length in range(4, 20):
                self.agrees(fast, scaled, torch.randn(2, length, 3))
        text = " ".join(logs.output)
        self.assertIn("has no module for", text)
        self.assertIn("after 8 shapes", text)

    def test_are_not_of_a_symbol_that_no_input_has(self):
        def shortened(x, most):
            return torch.relu(x[:, :most]) * most

        fast = self.compiled(shortened, dynamic=True)
        for length in (5, 7):
            self.agrees(fast, shortened, torch.randn(2, length, 3), length - 1)


class Export(Case):
    def test_of_dynamic_shapes(self):
        model, path = Encoder().eval(), os.path.join(self.folder, "encoder.so")
        length = torch.export.Dim("length", min=2, max=12)
        ids = torch.randint(0, 50, (2, 5))
        pruner.torch.export(model, path, (ids,), dynamic_shapes={"ids": {1: length}})
        module = pruner.Module(path)
        self.assertEqual([(symbol.min, symbol.max) for symbol in module.symbols], [(2, 12)])
        for length in range(2, 13):
            ids = torch.randint(0, 50, (2, length))
            with torch.no_grad():
                torch.testing.assert_close(torch.tensor(module(ids)[0]), model(ids)[0], rtol=1e-4, atol=1e-4)

    def test_of_a_dimension_without_an_end(self):
        shapes = {"ids": {1: torch.export.Dim("length")}}
        with self.assertRaisesRegex(NotImplementedError, "has no end"):
            pruner.torch.export(Encoder(64), "encoder.so", (torch.randint(0, 50, (2, 5)),), dynamic_shapes=shapes)


class Functions(Case):
    def test_at_each_extent(self):
        for name, (function, inputs) in FUNCTIONS.items():
            with self.subTest(name):
                self.setUp()
                fast = self.compiled(function)
                with self.assertNoLogs(LOG, logging.WARNING):
                    for extent in EXTENTS:
                        args = inputs(extent)
                        for x, longer in zip(args, inputs(extent + 1)):
                            for axis in range(x.dim()):
                                if x.shape[axis] != longer.shape[axis]:
                                    torch._dynamo.maybe_mark_dynamic(x, axis)
                        self.agrees(fast, function, *args)
                self.assertLess(self.modules(), 4)


if __name__ == "__main__":
    unittest.main()
