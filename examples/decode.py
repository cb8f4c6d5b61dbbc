"""Greedy decoding of a language model, from Python. Compile one and use:

    pruner compile --network gpt2 --cache-len 1024 --decode 1 -o gpt2.so
    PYTHONPATH=python python3 examples/decode.py gpt2.so 20 464 3290 318

Its phases take input_ids [1, rows] and past_length [1] and give logits [1, rows, vocabulary].
"""

import sys

import numpy as np
import pruner


def decode(module: pruner.Module, prompt: list, count: int) -> list:
    """`count` tokens after those of `prompt`."""
    module.reset()
    prefill, one = module.phases["prefill"], module.phases["decode"]
    rows, capacity = prefill.inputs[0].shape[1], module.states[0].shape[2]
    if len(prompt) + count > capacity + 1:
        raise ValueError(f"{len(prompt) + count} tokens, the cache has room for {capacity}")
    tokens, seen = list(prompt), 0
    while len(tokens) < len(prompt) + count:
        # As many rows as the cache has room for at once, else one by one.
        whole = seen < len(prompt) and seen + rows <= capacity
        part = tokens[seen : seen + rows] if whole else [tokens[seen]]
        # Zeros fill up the rows: what they leave in the cache is hidden, and overwritten later.
        ids = np.array([part + [0] * ((rows if whole else 1) - len(part))])
        (logits,) = (prefill if whole else one)(ids, np.array([seen]))
        seen += len(part)
        if seen >= len(prompt):
            tokens.append(int(logits[0, len(part) - 1].argmax()))
    return tokens[len(prompt) :]


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(f"usage: {sys.argv[0]} MODULE.so COUNT TOKEN...")
    path, count, *prompt = sys.argv[1:]
    print(*decode(pruner.Module(path), [int(token) for token in prompt], int(count)))
