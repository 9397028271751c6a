"""Wrappers around published kernels: small files whose entry calls one function of liger-kernel or fla-core.

Each judges as its own candidate: whatever is refused is a false refusal. The packages themselves are not part of this
repository; they are taken from a folder, a wheel, or the interpreter's own packages.
"""

import pathlib
import shutil
import zipfile

# name: (import, parameters with what `__main__` gives, expression)
LIGER = {
    "liger_rms_norm": ("from liger_kernel.ops.rms_norm import LigerRMSNormFunction", "x=grad(4096, 2048) w=grad(2048)", "LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, 'llama', False)"),
    "liger_layer_norm": ("from liger_kernel.ops.layer_norm import LigerLayerNormFunction", "x=grad(4096, 2048) w=grad(2048) b=grad(2048)", "LigerLayerNormFunction.apply(x, w, b, 1e-5)"),
    "liger_softmax": ("from liger_kernel.ops.softmax import LigerSoftmaxFunction", "x=single(4096, 3000)", "LigerSoftmaxFunction.apply(x)"),
    "liger_swiglu": ("from liger_kernel.ops.swiglu import LigerSiLUMulFunction", "a=half(4096, 4096) b=half(4096, 4096)", "LigerSiLUMulFunction.apply(a, b)"),
    "liger_geglu": ("from liger_kernel.ops.geglu import LigerGELUMulFunction", "a=half(4096, 4096) b=half(4096, 4096)", "LigerGELUMulFunction.apply(a, b)"),
    "liger_rope": ("from liger_kernel.ops.rope import LigerRopeFunction", "q=half(2, 16, 1024, 64) k=half(2, 4, 1024, 64) cos=single(1, 1024, 64) sin=single(1, 1024, 64)", "LigerRopeFunction.apply(q, k, cos, sin)"),
    "liger_cross_entropy": ("from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction", "x=single(2048, 8192) target=index(8192, 2048)", "LigerCrossEntropyFunction.apply(x, target, None)[0]"),
    "liger_jsd": ("from liger_kernel.ops.jsd import LigerJSDFunction", "x=single(1024, 8192) y=single(1024, 8192)", "LigerJSDFunction.apply(torch.log_softmax(x, -1), torch.log_softmax(y, -1))"),
    "liger_kl_div": ("from liger_kernel.ops.kl_div import LigerKLDivLossFunction", "x=single(1024, 8192) y=single(1024, 8192)", "LigerKLDivLossFunction.apply(torch.log_softmax(x, -1), torch.softmax(y, -1))"),
    "liger_tvd": ("from liger_kernel.ops.tvd import LigerTVDLossFunction", "x=single(1024, 8192) y=single(1024, 8192)", "LigerTVDLossFunction.apply(torch.softmax(x, -1), torch.softmax(y, -1))"),
    "liger_group_norm": ("from liger_kernel.ops.group_norm import LigerGroupNormFunction", "x=single(16, 64, 4096) w=single(64) b=single(64)", "LigerGroupNormFunction.apply(x, w, b, 64, 8, 1e-5)"),
    "liger_embedding": ("from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction", "table=half(8192, 1024) index=index(8192, 8, 1024)", "LigerEmbeddingFunction.apply(table, index)"),
    "liger_fused_linear_cross_entropy": ("from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction", "x=half(1024, 512) w=half(4096, 512) target=index(4096, 1024)", "LigerFusedLinearCrossEntropyFunction.apply(x, w, target)[0]"),
}
FLA = {
    "fla_l2norm": ("from fla.modules.norm.l2norm import l2norm", "x=half(8192, 16, 128)", "l2norm(x)"),
    "fla_rms_norm": ("from fla.modules.norm.layernorm import rms_norm", "x=grad(4096, 2048) w=grad(2048)", "rms_norm(x, w, None)"),
    "fla_swish": ("from fla.modules.activations import swish", "x=half(4096, 4096)", "swish(x)"),
    "fla_token_shift": ("from fla.modules.token_shift import token_shift", "x=half(4, 2048, 1024)", "token_shift(x)"),
    "fla_causal_conv1d": ("from fla.modules.causal_conv1d import causal_conv1d", "x=half(4, 2048, 1024) w=half(1024, 4) b=half(1024)", "causal_conv1d(x, w, b, activation='silu')[0]"),
    "fla_cumsum": ("from fla.ops.utils.cumsum import chunk_local_cumsum", "g=single(4, 2048, 32)", "chunk_local_cumsum(g, 64)"),
    "fla_recurrent_retention": ("from fla.ops.retention import fused_recurrent_retention", "q=half(4, 256, 8, 64) k=half(4, 256, 8, 64) v=half(4, 256, 8, 64)", "fused_recurrent_retention(q, k, v)[0]"),
}

TEMPLATE = '''"""{name}: a published kernel behind an entry of its own."""

import torch

{imports}


def entry({parameters}):
    return {expression}


if __name__ == "__main__":
    torch.manual_seed(0)
    half = lambda *shape: torch.randn(shape, device="cuda", dtype=torch.float16)
    single = lambda *shape: torch.randn(shape, device="cuda")
    grad = lambda *shape: half(*shape).requires_grad_()
    index = lambda below, *shape: torch.randint(0, below, shape, device="cuda")
    result = entry({arguments})
    if result.requires_grad:
        result.backward(torch.randn_like(result))
    torch.cuda.synchronize()
    assert not result.isnan().any()
    print("{name}", tuple(result.shape), result.dtype)
'''


def provide(packages, folder):
    """Puts packages (folders that hold them, or wheels) beside the wrappers."""
    for source in map(pathlib.Path, packages):
        if source.suffix == ".whl":
            with zipfile.ZipFile(source) as wheel:
                wheel.extractall(folder)
        else:
            shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


def write(folder):
    """Writes the wrappers; their paths by name."""
    paths = {}
    for name, (imports, given, expression) in {**LIGER, **FLA}.items():
        pairs = [pair.split("=", 1) for pair in given.replace(") ", ")|").split("|")]
        path = pathlib.Path(folder) / f"{name}.py"
        path.write_text(TEMPLATE.format(
            name=name, imports=imports, expression=expression,
            parameters=", ".join(key for key, _ in pairs), arguments=", ".join(value for _, value in pairs),
        ))
        paths[name] = path
    return paths
