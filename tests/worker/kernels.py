"""Kernels in torch, with the order of operations and the precision that real ones have.

Each operation has an original, variants that are as right, and bugs. `wide` is what a kernel calculates in: like a kernel that
promotes its inputs, or one that writes `.to(tl.float32)` whatever it gets (`hard`)."""

import dataclasses
import math

import torch

hard = False


def wide(x):
    return x.float() if hard or x.dtype != torch.float64 else x


def blocks(x, size=64):
    return x.split(size, dim=-1)


def in_order(x, size=64):
    """Block after block into one accumulator."""
    total = x.new_zeros(x.shape[:-1])
    for part in blocks(x, size):
        total = total + part.sum(-1)
    return total


def by_lane(x, size=64):
    """A vector of accumulators, reduced at the end."""
    pad = torch.nn.functional.pad(x, (0, -x.shape[-1] % size))
    lanes = torch.zeros_like(pad[..., :size])
    for part in blocks(pad, size):
        lanes = lanes + part
    return tree(lanes)


def tree(x):
    while x.shape[-1] > 1:
        x = torch.nn.functional.pad(x, (0, x.shape[-1] % 2))
        x = x[..., ::2] + x[..., 1::2]
    return x[..., 0]


def one_by_one(x):
    total = x.new_zeros(x.shape[:-1])
    for at in range(x.shape[-1]):
        total = total + x[..., at]
    return total


# Softmax


def softmax(x, add=in_order, cut=0, shift=True):
    y = wide(x)
    seen = y[..., : y.shape[-1] - cut]
    m = seen.amax(-1, keepdim=True) if shift else 0.0
    return ((y - m).exp() / add((seen - m).exp())[..., None]).to(x.dtype)


def softmax_exp2(x):
    y = wide(x) * 1.4426950408889634
    p = torch.exp2(y - y.amax(-1, keepdim=True))
    return (p * (1 / by_lane(p))[..., None]).to(x.dtype)


def softmax_online(x, size=64):
    y = wide(x)
    m = torch.full_like(y[..., 0], -math.inf)
    total = torch.zeros_like(m)
    for part in blocks(y, size):
        new = torch.maximum(m, part.amax(-1))
        safe = torch.where(new == -math.inf, 0.0, new)
        total = total * (m - safe).exp() + (part - safe[..., None]).exp().sum(-1)
        m = new
    return ((y - m[..., None]).exp() / total[..., None]).to(x.dtype)


def softmax_padded_by_zeros(x):
    y = torch.nn.functional.pad(wide(x), (0, 3))
    m = y.amax(-1, keepdim=True)
    p = (y - m).exp()
    return (p / in_order(p)[..., None])[..., : x.shape[-1]].to(x.dtype)


# Normalizations


def layer_norm(x, w, b, add=in_order, eps=1e-5, outside=0.0, unbiased=False, cut=0):
    y = wide(x)
    n = y.shape[-1]
    seen = y[..., : n - cut]
    mean = add(seen)[..., None] / n
    var = add((seen - mean) ** 2)[..., None] / (n - 1 if unbiased else n)
    return ((y - mean) / (torch.sqrt(var + eps) + outside) * wide(w) + wide(b)).to(x.dtype)


def layer_norm_welford(x, w, b):
    y = wide(x)
    mean = torch.zeros_like(y[..., :1])
    square = torch.zeros_like(mean)
    count = 0
    for part in blocks(y):
        n = part.shape[-1]
        here = part.mean(-1, keepdim=True)
        delta = here - mean
        square = square + ((part - here) ** 2).sum(-1, keepdim=True) + delta**2 * (count * n / (count + n))
        mean = mean + delta * (n / (count + n))
        count += n
    return ((y - mean) * torch.rsqrt(square / count + 1e-5) * wide(w) + wide(b)).to(x.dtype)


def layer_norm_squares(x, w, b):
    y = wide(x)
    n = y.shape[-1]
    mean = by_lane(y)[..., None] / n
    var = by_lane(y * y)[..., None] / n - mean * mean
    return ((y - mean) * torch.rsqrt(var.clamp(min=0) + 1e-5) * wide(w) + wide(b)).to(x.dtype)


def rms_norm(x, w, add=in_order, eps=1e-6, fused=True, cut=0, stale=False):
    y = wide(x)
    seen = y[..., : y.shape[-1] - cut]
    scale = torch.rsqrt(add(seen * seen)[..., None] / y.shape[-1] + eps)
    out = (y * scale * wide(w)).to(x.dtype) if fused else (y * scale).to(x.dtype) * w
    if stale:
        out[-1] = out[-2]
    return out


# Products


def matmul(a, b, block=32, split=1, accumulator=None, cut=0, rounded=lambda x: x):
    x, y = wide(rounded(a)), wide(rounded(b))
    k = x.shape[-1] - cut
    parts = []
    for start in range(0, k, -(-k // split)):
        stop = min(k, start + -(-k // split))
        total = torch.zeros(x.shape[0], y.shape[1], dtype=accumulator or x.dtype)
        for at in range(start, stop, block):
            end = min(stop, at + block)
            total = (total.to(x.dtype) + x[:, at:end] @ y[at:end]).to(total.dtype)
        parts.append(total)
    while len(parts) > 1:
        parts.append(parts.pop(0) + parts.pop(0))
    return parts[0].to(a.dtype)


def mantissa(bits):
    """Rounds as tensor cores do with 32-bit inputs."""

    def rounded(x):
        if x.dtype != torch.float32:
            return x
        drop = 23 - bits
        return (x.view(torch.int32) + (1 << (drop - 1)) & -(1 << drop)).view(torch.float32)

    return rounded


def attention(q, k, v, scale=None, ahead=0, low=False, online=False):
    """One causal head."""
    x, y, z = wide(q), wide(k), wide(v)
    n, d = x.shape
    scores = x @ y.T * (scale or d**-0.5)
    allowed = torch.arange(n)[:, None] + ahead >= torch.arange(n)[None, :]
    scores = scores.masked_fill(~allowed, -math.inf)
    if not online:
        p = (scores - scores.amax(-1, keepdim=True)).exp()
        p = p / p.sum(-1, keepdim=True)
        return ((p.to(v.dtype) if low else p).to(z.dtype) @ z).to(q.dtype)
    m = torch.full((n, 1), -math.inf, dtype=x.dtype)
    total, out = torch.zeros_like(m), torch.zeros_like(z)
    for at in range(0, n, 16):
        part = scores[:, at : at + 16]
        new = torch.maximum(m, part.amax(-1, keepdim=True))
        p = torch.exp2((part - new) * 1.4426950408889634)
        shrink = torch.exp2((m - new) * 1.4426950408889634)
        total = total * shrink + p.sum(-1, keepdim=True)
        out = out * shrink + (p.to(v.dtype) if low else p).to(z.dtype) @ z[at : at + 16]
        m = new
    return (out / total).to(q.dtype)


# Reductions


def row_sum(x, add=in_order, cut=0):
    return add(wide(x)[..., : x.shape[-1] - cut]).to(x.dtype)


def mean_of_all(x, add=in_order, off=0):
    y = wide(x)
    return (add(add(y)) / (y.numel() + off)).to(x.dtype)


def row_max(x, start=-math.inf, swallow=False):
    y = wide(x).clamp(min=start)
    if swallow:
        y = torch.where(y.isnan(), -math.inf, y)
    return y.amax(-1).to(x.dtype)


def cross_entropy(x, add=in_order, shift=True, mean=False):
    y = wide(x)
    target = torch.arange(x.shape[0]) * 7 % x.shape[-1]
    m = y.amax(-1, keepdim=True) if shift else torch.zeros_like(y[..., :1])
    loss = add((y - m).exp()).log() + (m - y.gather(-1, target[:, None]))[:, 0]
    return tree(loss) / len(loss) if mean else loss


def cross_entropy_online(x):
    y = wide(x)
    target = torch.arange(x.shape[0]) * 7 % x.shape[-1]
    m = torch.full_like(y[..., 0], -math.inf)
    total = torch.zeros_like(m)
    for part in blocks(y, 32):
        new = torch.maximum(m, part.amax(-1))
        total = total * (m - new).exp() + (part - new[..., None]).exp().sum(-1)
        m = new
    return m + total.log() - y.gather(-1, target[:, None])[:, 0]


# Element by element


def gelu(x):
    y = wide(x)
    return (y * 0.5 * (1 + torch.erf(y * 0.7071067811865476))).to(x.dtype)


def gelu_erfc(x):
    y = wide(x)
    return (0.5 * y * torch.erfc(-y / math.sqrt(2))).to(x.dtype)


def gelu_tanh(x):
    y = wide(x)
    return (0.5 * y * (1 + torch.tanh(0.7978845608028654 * (y + 0.044715 * y**3)))).to(x.dtype)


def silu(x):
    y = wide(x)
    return (y * torch.sigmoid(y)).to(x.dtype)


def silu_exp(x):
    y = wide(x)
    return (y / (1 + (-y).exp())).to(x.dtype)


def silu_exp2(x):
    y = wide(x)
    return (y * (1 / (1 + torch.exp2(y * -1.4426950408889634)))).to(x.dtype)


def on(function, **options):
    return lambda *inputs: function(*inputs, **options)


@dataclasses.dataclass
class Operation:
    shapes: list
    original: object
    right: dict
    wrong: dict
    dtypes: tuple = (torch.float32, torch.float16, torch.bfloat16)
    # Exact with small integers.
    is_linear: bool = False


def rows(count, width):
    return [(count, width)]


SIZES = [(4, 5), (16, 64), (33, 257), (8, 1000)]
BOTH = {"lanes": by_lane, "tree": tree}

OPERATIONS = {
    "softmax": Operation(
        [rows(*size) for size in SIZES],
        softmax,
        {"online": softmax_online, "exp2": softmax_exp2, **{name: on(softmax, add=add) for name, add in BOTH.items()}},
        {
            "last column not summed": on(softmax, cut=1),
            "maximum not subtracted": on(softmax, shift=False),
            "masked lanes hold zeros": softmax_padded_by_zeros,
        },
    ),
    "layer_norm": Operation(
        [[(r, n), (n,), (n,)] for r, n in SIZES],
        layer_norm,
        {"welford": layer_norm_welford, **{name: on(layer_norm, add=add) for name, add in BOTH.items()}},
        {
            "no eps": on(layer_norm, eps=0.0),
            "eps outside": on(layer_norm, eps=0.0, outside=1e-5),
            "unbiased variance": on(layer_norm, unbiased=True),
            "last column not summed": on(layer_norm, cut=1),
            "squares": layer_norm_squares,
        },
    ),
    "layer_norm by squares": Operation(
        [[(r, n), (n,), (n,)] for r, n in SIZES],
        layer_norm_squares,
        {"two passes": layer_norm, "welford": layer_norm_welford},
        {"unbiased variance": on(layer_norm, unbiased=True), "last column not summed": on(layer_norm, cut=1)},
    ),
    "rms_norm": Operation(
        [[(r, n), (n,)] for r, n in SIZES],
        rms_norm,
        {"rounded twice": on(rms_norm, fused=False), **{name: on(rms_norm, add=add) for name, add in BOTH.items()}},
        {
            "no eps": on(rms_norm, eps=0.0),
            "last column not summed": on(rms_norm, cut=1),
            "stale last row": on(rms_norm, stale=True),
        },
    ),
    "matmul": Operation(
        [[(m, k), (k, n)] for m, k, n in [(5, 7, 3), (32, 64, 16), (64, 256, 64), (17, 500, 33)]],
        matmul,
        {
            "split": on(matmul, split=4),
            "block of 16": on(matmul, block=16),
            "block of 128": on(matmul, block=128),
            "one by one": on(matmul, block=1),
            "library": lambda a, b: (wide(a) @ wide(b)).to(a.dtype),
        },
        {
            "last of k dropped": on(matmul, cut=1),
            "16-bit accumulator": on(matmul, accumulator=torch.float16),
            "inputs of 10 bits": on(matmul, rounded=mantissa(10)),
            "inputs of 7 bits": on(matmul, rounded=mantissa(7)),
        },
        is_linear=True,
    ),
    "matmul of 10 bits": Operation(
        [[(m, k), (k, n)] for m, k, n in [(32, 64, 16), (64, 256, 64), (17, 500, 33)]],
        on(matmul, rounded=mantissa(10)),
        {"split": on(matmul, rounded=mantissa(10), split=4), "better": matmul},
        {"inputs of 7 bits": on(matmul, rounded=mantissa(7)), "last of k dropped": on(matmul, cut=1)},
        (torch.float32,),
    ),
    "attention": Operation(
        [[(n, d)] * 3 for n, d in [(16, 16), (64, 32), (100, 64)]],
        on(attention, low=True),
        {"online": on(attention, online=True), "online, rounded": on(attention, online=True, low=True), "wide": attention},
        {
            "scale of d + 1": lambda q, k, v: attention(q, k, v, scale=(q.shape[1] + 1) ** -0.5, low=True),
            "mask one ahead": on(attention, ahead=1, low=True),
            "mask one behind": on(attention, ahead=-1, low=True),
        },
    ),
    "row_sum": Operation(
        [rows(*size) for size in [*SIZES, (1, 5000), (3, 1)]],
        row_sum,
        {name: on(row_sum, add=add) for name, add in BOTH.items()},
        {"last column lost": on(row_sum, cut=1)},
        is_linear=True,
    ),
    "mean": Operation(
        [rows(*size) for size in SIZES],
        mean_of_all,
        {name: on(mean_of_all, add=add) for name, add in BOTH.items()},
        {"one too many": on(mean_of_all, off=1)},
    ),
    "row_max": Operation(
        [rows(*size) for size in SIZES],
        row_max,
        {},
        {"begins at zero": on(row_max, start=0.0), "swallows NaN": on(row_max, swallow=True)},
    ),
    "cross_entropy": Operation(
        [rows(*size) for size in SIZES],
        cross_entropy,
        {"online": cross_entropy_online, **{name: on(cross_entropy, add=add) for name, add in BOTH.items()}},
        {"maximum not subtracted": on(cross_entropy, shift=False)},
    ),
    "mean cross_entropy": Operation(
        [rows(*size) for size in SIZES],
        on(cross_entropy, mean=True),
        {"lanes": on(cross_entropy, mean=True, add=by_lane), "in order": lambda x: one_by_one(cross_entropy(x)) / len(x)},
        {},
    ),
    "gelu": Operation([rows(*size) for size in SIZES], gelu, {"erfc": gelu_erfc}, {"tanh": gelu_tanh}),
    "silu": Operation([rows(*size) for size in SIZES], silu, {"exp": silu_exp, "exp2": silu_exp2}, {"gelu": gelu}),
}
