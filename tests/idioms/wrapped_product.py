"""A product in groups of programs, whose rows and columns begin anew behind the last."""
# skills: tile_sizes product_tiles descriptors even_sizes persistent split

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=product x=bf16[4096,4096] y=bf16[4096,4096]


@triton.jit
def product_kernel(
    x, y, out, rows, columns, depth, x_row, x_col, y_row, y_col, out_row, out_col,
    R: tl.constexpr, C: tl.constexpr, D: tl.constexpr, GROUP: tl.constexpr,
):
    pid = tl.program_id(0)
    down, across = tl.cdiv(rows, R), tl.cdiv(columns, C)
    group = pid // (GROUP * across)
    height = min(down - group * GROUP, GROUP)
    r = group * GROUP + (pid % (GROUP * across)) % height
    c = (pid % (GROUP * across)) // height
    at_r = (r * R + tl.arange(0, R)) % rows
    at_c = (c * C + tl.arange(0, C)) % columns
    at_d = tl.arange(0, D)
    xs = x + at_r[:, None] * x_row + at_d[None, :] * x_col
    ys = y + at_d[:, None] * y_row + at_c[None, :] * y_col
    acc = tl.zeros((R, C), dtype=tl.float32)
    for i in range(tl.cdiv(depth, D)):
        left = depth - i * D
        a = tl.load(xs, mask=at_d[None, :] < left, other=0.0)
        b = tl.load(ys, mask=at_d[:, None] < left, other=0.0)
        acc = tl.dot(a, b, acc)
        xs += D * x_col
        ys += D * y_row
    out_r = r * R + tl.arange(0, R)
    out_c = c * C + tl.arange(0, C)
    inside = (out_r[:, None] < rows) & (out_c[None, :] < columns)
    tl.store(out + out_r[:, None] * out_row + out_c[None, :] * out_col, acc.to(tl.bfloat16), mask=inside)


def product(x, y):
    rows, depth = x.shape
    columns = y.shape[1]
    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    grid = lambda meta: (triton.cdiv(rows, meta["R"]) * triton.cdiv(columns, meta["C"]),)
    product_kernel[grid](
        x, y, out, rows, columns, depth, x.stride(0), x.stride(1), y.stride(0), y.stride(1), out.stride(0), out.stride(1),
        R=64, C=64, D=32, GROUP=8,
    )
    return out
