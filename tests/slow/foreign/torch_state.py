"""PyTorch programs about what changes between calls: generators, counters, modules, arguments."""

# ruff: noqa: E501

from __future__ import annotations

import copy
import functools
import os
import pickle
import random
import tempfile
import threading

import numpy as np
import torch
import torch.nn.functional as F
from torch_run import called, group

draw = group("generators")
draw.table([
    ("random.random", lambda x: x * random.random(), "f32 3"),
    ("random.uniform in a constant", lambda x: x + torch.tensor(random.uniform(1, 2)), "f32 3"),
    ("random.randint", lambda x: x + random.randint(0, 10**6), "i64 3"),
    ("random.Random", lambda x: x * random.Random(0).random(), "f32 3"),
    ("random.choice", lambda x: random.choice([torch.sin, torch.cos, torch.exp])(x), "f32 3"),
    ("random.shuffle", lambda x: (lambda o: (random.shuffle(o), x[o])[1])(list(range(8))), "f32 8"),
    ("numpy.random.rand", lambda x: x * np.random.rand(), "f32 3"),
    ("numpy.random array", lambda x: x * torch.from_numpy(np.random.rand(3)), "f32 3"),
    ("numpy default_rng", lambda x: x * np.random.default_rng(5).random(), "f32 3"),
    ("torch.rand", lambda x: x * torch.rand(3), "f32 3"),
    ("torch.randn_like", lambda x: x + torch.randn_like(x), "f32 3"),
    ("torch.randint", lambda x: x + torch.randint(0, 100, (3,)), "i64 3"),
    ("torch.randperm", lambda x: x[torch.randperm(5)], "f32 5"),
    ("bernoulli", lambda x: torch.bernoulli(x.sigmoid()), "f32 9"),
    ("multinomial", lambda x: torch.multinomial(x.softmax(0), 4, replacement=True), "f32 9"),
    ("normal_", lambda x: x.normal_(), "f32 3"),
    ("uniform_", lambda x: x.uniform_(2, 3), "f32 3"),
    ("exponential_", lambda x: x.exponential_(), "f32 3"),
    ("torch.initial_seed", lambda x: x + torch.initial_seed() % 7, "i64 3"),
    ("manual_seed inside", lambda x: (torch.manual_seed(4), x + torch.rand(3))[1], "f32 3"),
    ("generator argument", lambda x: x + torch.rand(3, generator=torch.Generator().manual_seed(2)), "f32 3"),
    ("two draws", lambda x: torch.rand(3) - torch.rand(3) + x, "f32 3"),
    ("draw and return twice", lambda x: (lambda r: (r, r * x))(torch.rand(3)), "f32 3"),
    ("gumbel softmax hard sums to one", lambda x: F.gumbel_softmax(x, hard=True).sum(), "f32 9"),
])  # fmt: skip


@draw.program
def a_generator_of_its_own(jit):
    generator = torch.Generator().manual_seed(9)
    f = jit(lambda x: x + torch.rand(3, generator=generator))
    return [f(torch.zeros(3)) for _ in range(3)]


@draw.program
def a_random_object_that_goes_on(jit):
    rng = random.Random(1)
    f = jit(lambda x: x * rng.random())
    return [f(torch.ones(2)) for _ in range(3)]


@draw.program
def a_numpy_generator_that_goes_on(jit):
    rng = np.random.default_rng(1)
    f = jit(lambda x: x * float(rng.random()))
    return [f(torch.ones(2)) for _ in range(3)]


@draw.program
def seeds_between_calls(jit):
    f = jit(lambda x: x + torch.rand(3))
    seen = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        seen.append(f(torch.zeros(3)))
    return seen


@draw.program
def state_afterwards(jit):
    jit(lambda x: x + torch.rand(3))(torch.zeros(3))
    return torch.rand(2), random.random()


@draw.program
def rng_state_is_saved(jit):
    state = torch.get_rng_state()
    f = jit(lambda x: x + torch.rand(3))
    first = f(torch.zeros(3))
    torch.set_rng_state(state)
    return first, f(torch.zeros(3))


state = group("state")


@state.program
def counter_in_a_closure(jit):
    count = 0

    def f(x):
        nonlocal count
        count += 1
        return x * count

    g = jit(f)
    return [g(torch.ones(2)) for _ in range(4)], count


@state.program
def counter_in_a_list(jit):
    counts = [0]

    def f(x):
        counts[0] += 1
        return x + counts[0]

    g = jit(f)
    return [g(torch.ones(2)) for _ in range(4)], counts


@state.program
def counter_in_a_module(jit):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = 0
            self.register_buffer("total", torch.zeros(()))

        def forward(self, x):
            self.steps += 1
            self.total += x.sum()
            return x * self.steps + self.total

    net = Net()
    g = jit(net)
    return [g(torch.ones(2)) for _ in range(4)], net.steps, net.total


@state.program
def appended_to_a_list(jit):
    seen = []

    def f(x):
        seen.append(x * 2)
        return x + len(seen)

    g = jit(f)
    return [g(torch.ones(2) * i) for i in range(3)], seen


@state.program
def dictionary_as_cache(jit):
    cache = {}

    def f(x, key):
        if key not in cache:
            cache[key] = x.sin()
        return cache[key] * 2

    g = jit(f)
    return [g(torch.full((2,), float(i)), k) for i, k in enumerate("abab")], sorted(cache)


SCALE = 2.0


@state.program
def changing_global(jit):
    global SCALE
    f = jit(lambda x: x * SCALE)
    seen = []
    for value in (2.0, 3.0, 4, 2.0):
        SCALE = value
        seen.append(f(torch.ones(2)))
    return seen


@state.program
def changing_closure_tensor(jit):
    weight = torch.ones(2)
    f = jit(lambda x: x * weight)
    seen = [f(torch.ones(2))]
    weight.mul_(5)
    seen.append(f(torch.ones(2)))
    weight = torch.full((2,), 7.0)
    seen.append(f(torch.ones(2)))
    return seen


@state.program
def changing_attribute(jit):
    class Config:
        power = 2

    config = Config()
    f = jit(lambda x: x**config.power)
    seen = []
    for power in (2, 3, 0.5):
        config.power = power
        seen.append(f(torch.full((2,), 4.0)))
    return seen


@state.program
def changing_default(jit):
    def f(x, n=2):
        return x * n

    g = jit(f)
    return g(torch.ones(2)), g(torch.ones(2), 3), g(torch.ones(2), n=4), g(torch.ones(2))


@state.program
def partial_and_bound_methods(jit):
    class Gain:
        def __init__(self, gain):
            self.gain = gain

        def apply(self, x, y=1):
            return x * self.gain + y

    gain = Gain(2)
    f, g = jit(gain.apply), jit(functools.partial(gain.apply, y=5))
    seen = [f(torch.ones(2)), g(torch.ones(2))]
    gain.gain = 10
    return [*seen, f(torch.ones(2)), g(torch.ones(2))]


@state.program
def train_and_eval(jit):
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.0))
    f, x = jit(net), torch.randn(5, 3)
    seen = [f(x).detach()]
    net.eval()
    seen.append(f(x).detach())
    net.train()
    seen.append(f(x).detach())
    return seen, [b.clone() for b in net.buffers()]


@state.program
def weights_loaded_between_calls(jit):
    net = torch.nn.Linear(3, 2)
    f, x = jit(net), torch.ones(1, 3)
    seen = [f(x).detach()]
    net.load_state_dict({"weight": torch.ones(2, 3), "bias": torch.zeros(2)})
    seen.append(f(x).detach())
    net.weight = torch.nn.Parameter(torch.full((2, 3), 2.0))
    seen.append(f(x).detach())
    net.weight.data = torch.full((2, 3), 3.0)
    seen.append(f(x).detach())
    return seen


@state.program
def moved_to_another_dtype(jit):
    net = torch.nn.Linear(3, 2)
    f = jit(net)
    seen = [f(torch.ones(1, 3)).detach()]
    net.double()
    seen.append(f(torch.ones(1, 3, dtype=torch.float64)).detach())
    net.bfloat16()
    return [*seen, f(torch.ones(1, 3, dtype=torch.bfloat16)).detach()]


@state.program
def frozen_weights_that_thaw(jit):
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 2)).requires_grad_(False)
    f, x = jit(net), torch.ones(1, 8)
    seen = [f(x), f(x)]
    with torch.no_grad():
        net[0].weight.add_(1)
    seen.append(f(x))
    net.requires_grad_(True)
    y = f(x)
    y.sum().backward()
    return [*seen, y], net[0].weight.grad


@state.program
def swapped_submodule(jit):
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    f, x = jit(net), torch.tensor([[-1.0, 2.0]])
    first = f(x)
    net[1] = torch.nn.Tanh()
    return first, f(x)


@state.program
def exponential_moving_average(jit):
    average = torch.zeros(3)

    def f(x):
        average.lerp_(x, 0.1)
        return x - average

    g = jit(f)
    return [g(torch.full((3,), float(i))) for i in range(4)], average


@state.program
def a_python_generator(jit):
    def halves(x):
        while x.shape[0] > 1:
            x = x[: x.shape[0] // 2]
            yield x.sum()

    return jit(lambda x: list(halves(x)))(torch.arange(8.0))


@state.program
def a_generator_consumed_over_calls(jit):
    numbers = iter([1.0, 10.0, 100.0])
    f = jit(lambda x: x * next(numbers))
    return [f(torch.ones(2)) for _ in range(3)]


@state.program
def exceptions_and_cleanup(jit):
    log = []

    def f(x, bad):
        try:
            log.append("in")
            y = x * 2
            if bad:
                raise ValueError("bad")
            return y
        finally:
            log.append("out")

    g, seen = jit(f), []
    for bad in (False, True, False):
        try:
            seen.append(g(torch.ones(2), bad))
        except ValueError as error:
            seen.append(str(error))
    return seen, log


@state.program
def context_managers(jit):
    def f(x):
        return x.sum(), torch.is_grad_enabled(), torch.get_default_dtype() is torch.float32

    g = jit(f)
    seen = [g(torch.ones(2))]
    with torch.no_grad():
        seen.append(g(torch.ones(2)))
    return seen


@state.program
def default_dtype_changes(jit):
    f = jit(lambda x: (x + torch.tensor(0.1), torch.ones(2), x / 3))
    seen = [f(torch.ones(2, dtype=torch.int32))]
    torch.set_default_dtype(torch.float64)
    try:
        seen.append(f(torch.ones(2, dtype=torch.int32)))
    finally:
        torch.set_default_dtype(torch.float32)
    return seen


@state.program
def control_flow_on_values(jit):
    def f(x):
        if x.sum() > 0:
            return x * 2
        n = 0
        while x.abs().max() > 1 and n < 20:
            x, n = x / 2, n + 1
        return x

    g = jit(f)
    return g(torch.ones(3)), g(torch.full((3,), -9.0)), g(torch.zeros(3))


@state.program
def numbers_out_of_tensors(jit):
    def f(x):
        return x * x.max().item() + int(x.argmax()), float(x.mean()), x.tolist()

    return jit(f)(torch.tensor([1.0, 3.0, 2.0]))


@state.program
def printed_and_asserted(jit):
    def f(x):
        assert x.shape[0] == 3, "three"
        torch._assert(x.shape[0] > 1, "more")
        return x + 1

    return jit(f)(torch.ones(3))


@state.program
def deep_copy_and_pickle(jit):
    net = torch.nn.Linear(2, 2)
    f = jit(net)
    first = f(torch.ones(1, 2))
    twin = copy.deepcopy(net)
    with torch.no_grad():
        twin.weight.zero_()
    again = pickle.loads(pickle.dumps(net))
    return first, jit(twin)(torch.ones(1, 2)), f(torch.ones(1, 2)), jit(again)(torch.ones(1, 2))


@state.program
def threads(jit):
    f = jit(lambda x, n: (x * n).cumsum(0))
    seen = [None] * 4

    def work(i):
        seen[i] = f(torch.arange(5.0), float(i))

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return seen


@state.program
def fork_after_compiling(jit):
    f = jit(lambda x: (x @ x).sin())
    x = torch.ones(40, 40)
    first = f(x)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, f(x).numpy().tobytes()[:400])
        os._exit(0)
    os.close(write)
    data = os.read(read, 400)
    os.close(read)
    status = os.waitpid(child, 0)[1]
    return status, first, torch.frombuffer(bytearray(data), dtype=torch.float32)


@state.program
def fork_before_compiling(jit):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        y = jit(lambda x: x.exp() + 1)(torch.arange(5.0))
        os.write(write, y.numpy().tobytes())
        os._exit(0)
    os.close(write)
    data = os.read(read, 400)
    os.close(read)
    return os.waitpid(child, 0)[1], torch.frombuffer(bytearray(data), dtype=torch.float32)


change = group("calls that change")


def over(*makes):
    """Calls a function with each of several arguments, in turn, twice."""

    def run(function, make):
        return [function(*m()) for m in makes * 2]

    return run


def each(name, function, *makes):
    change.table([(name, function)], call=over(*makes))


each(
    "strides",
    lambda x: x * 2,
    lambda: [torch.arange(12.0).view(3, 4)],
    lambda: [torch.arange(12.0).view(4, 3).T],
    lambda: [torch.arange(24.0).view(3, 8)[:, ::2]],
)
each(
    "dtypes",
    lambda x: x * 2 + 1,
    *(
        lambda d=d: [torch.arange(5).to(d)]
        for d in (
            torch.float32,
            torch.float64,
            torch.int32,
            torch.int8,
            torch.uint8,
            torch.float16,
            torch.complex64,
        )
    ),
)
each(
    "shapes",
    lambda x: x.softmax(-1),
    *(lambda n=n: [torch.arange(float(n))] for n in (1, 2, 3, 5, 8, 0)),
)
each(
    "ranks", lambda x: x.sum(-1), *(lambda s=s: [torch.ones(s)] for s in ((2,), (2, 3), (2, 3, 4)))
)
each(
    "alignment",
    lambda x: x * 2,
    *(lambda o=o: [torch.arange(40.0)[o : o + 16]] for o in (0, 1, 3, 4)),
)
each(
    "lazy bits",
    lambda z: z * 2,
    lambda: [torch.ones(3) * 1j],
    lambda: [(torch.ones(3) * 1j).conj()],
)
each(
    "lazy bits of reals",
    lambda x: x + 1,
    lambda: [torch.ones(3)],
    lambda: [(torch.ones(3) * 1j).conj().imag],
)
each(
    "gradients",
    lambda x: x.sin(),
    lambda: [torch.ones(3)],
    lambda: [torch.ones(3, requires_grad=True)],
)
each(
    "None and tensors",
    lambda x, y: x if y is None else x + y,
    lambda: [torch.ones(3), None],
    lambda: [torch.ones(3), torch.ones(3)],
)
each(
    "numbers and tensors",
    lambda x, y: x * y,
    lambda: [torch.ones(3), 2],
    lambda: [torch.ones(3), torch.tensor(2.5)],
    lambda: [torch.ones(3), True],
)
each("lists", lambda xs: sum(xs), lambda: [[torch.ones(2)] * 2], lambda: [[torch.ones(2)] * 3])
each(
    "dictionaries",
    lambda d: {k: v * 2 for k, v in d.items()},
    lambda: [{"a": torch.ones(2)}],
    lambda: [{"b": torch.ones(2), "a": torch.zeros(1)}],
)
each(
    "strings",
    lambda x, s: x.sin() if s == "sin" else x.cos(),
    lambda: [torch.ones(2), "sin"],
    lambda: [torch.ones(2), "cos"],
)
each(
    "expanded and not",
    lambda x: x + 1,
    lambda: [torch.ones(1, 4).expand(3, 4)],
    lambda: [torch.ones(3, 4)],
)
each(
    "channels last",
    lambda x: F.avg_pool2d(x, 2),
    lambda: [torch.ones(1, 2, 4, 4)],
    lambda: [torch.ones(1, 2, 4, 4).to(memory_format=torch.channels_last)],
)
each(
    "empty tensors",
    lambda x: (x * 2, x.sum(), x.sum(0)),
    lambda: [torch.ones(0, 3)],
    lambda: [torch.ones(2, 3)],
)
each(
    "functions as arguments",
    lambda x, f: f(x),
    lambda: [torch.ones(2), torch.sin],
    lambda: [torch.ones(2), torch.cos],
)
each("named tuples", lambda p: torch.Size([*p, 1]), lambda: [torch.Size([2])])
each(
    "numpy scalars",
    lambda x, n: x * n,
    lambda: [torch.ones(2), np.float32(1.5)],
    lambda: [torch.ones(2), np.float64(2.5)],
    lambda: [torch.ones(2), np.int8(-3)],
)

array = group("NumPy arrays")
array.table([
    ("array argument", lambda a: torch.from_numpy(a) * 2, lambda: np.arange(5, dtype=np.float32)),
    ("as_tensor", lambda a: torch.as_tensor(a) + 1, lambda: np.arange(5, dtype=np.int16)),
    ("updated array", lambda a: (torch.from_numpy(a).add_(1), 0)[1], lambda: np.arange(5, dtype=np.float32)),
    ("strided array", lambda a: torch.from_numpy(a) * 2, lambda: np.arange(10, dtype=np.float32)[::2]),
    ("transposed array", lambda a: torch.from_numpy(a) * 2, lambda: np.arange(6, dtype=np.float32).reshape(2, 3).T),
    ("big-endian array", lambda a: torch.tensor(a.astype(np.float32)) * 2, lambda: np.arange(5, dtype=">f4")),
    ("big-endian argument", lambda a, x: x + a.sum(), lambda: np.arange(5, dtype=">f4"), "f32 2"),
    ("array and tensor", lambda x, a: x * torch.from_numpy(a), "f32 3", lambda: np.arange(3.0)),
    ("numpy code", lambda a: np.sin(a) + np.cumsum(a), lambda: np.arange(5.0)),
    ("numpy code on bytes", lambda a: a + np.uint8(200), lambda: np.array([100, 3], np.uint8)),
    ("numpy integer division", lambda a: a // -3, lambda: np.arange(-5, 5)),
    ("result as numpy", lambda x: (x * 2).numpy(), "f32 3"),
    ("bool array", lambda a: torch.from_numpy(a).int() + 1, lambda: np.array([True, False])),
    ("0-d array", lambda a: torch.as_tensor(a) * 2, lambda: np.array(2.5)),
    ("matrix", lambda a: torch.as_tensor(np.asarray(a)) * 2, lambda: np.matrix([[1.0, 2.0]])),
    ("masked array", lambda a: torch.as_tensor(a.filled(0)) * 2, lambda: np.ma.array([1.0, 2.0], mask=[False, True])),
    ("read-only array", lambda a: torch.tensor(a) * 2, lambda: np.broadcast_to(np.float32(2), (3,))),
    ("structured field", lambda a: torch.tensor(a["x"]) * 2, lambda: np.array([(1.0, 2)], dtype=[("x", "f4"), ("y", "i4")])),
    ("float16 array", lambda a: torch.from_numpy(a) * 2, lambda: np.arange(5, dtype=np.float16)),
    ("complex array", lambda a: torch.from_numpy(a) * 1j, lambda: np.arange(5) * (1 + 1j)),
], call=called)  # fmt: skip


def _changing(make, change_it):
    def run(jit):
        a = make()
        f = jit(lambda x, a: x + torch.as_tensor(np.asarray(a, dtype=np.float32)))
        first = f(torch.zeros(3), a)
        change_it(a)
        return first, f(torch.zeros(3), a)

    return run


def _memmap():
    with tempfile.TemporaryFile() as file:
        a = np.memmap(file, dtype=np.float32, mode="w+", shape=(3,))
    a[:] = 1
    return a


for name, make in {
    "array that changes": lambda: np.ones(3, np.float32),
    "memmap that changes": _memmap,
    "matrix that changes": lambda: np.matrix([[1.0, 1.0, 1.0]]).astype(np.float32),
    "masked array that changes": lambda: np.ma.ones(3),
    "big-endian array that changes": lambda: np.ones(3, ">f4"),
    "big-endian integers that change": lambda: np.ones(3, ">i2"),
    "recarray that changes": lambda: np.ones(3, np.float32).view(np.recarray),
}.items():
    run = _changing(make, lambda a: a.__setitem__(Ellipsis, 5))
    run.__name__ = name
    array.program(run)
