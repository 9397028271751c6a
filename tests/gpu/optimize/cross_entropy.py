"""Cross entropy over a large vocabulary, the loss of each token. One pass over the logits, with an online logsumexp."""

import torch
import triton
import triton.language as tl

# warpsmith: workload entry=cross_entropy logits=bf16[4096,128256] targets=i64[4096]<128256


@triton.jit
def cross_entropy_kernel(
    logits_ptr, targets_ptr, loss_ptr,
    row_stride, vocab_size, ignore_index,
    BLOCK_V: tl.constexpr = 1024,
):
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * row_stride
    target = tl.load(targets_ptr + row)

    running_max = float("-inf")
    running_sum = 0.0
    for start in range(0, vocab_size, BLOCK_V):
        offsets = start + tl.arange(0, BLOCK_V)
        block = tl.load(logits_ptr + offsets, mask=offsets < vocab_size, other=float("-inf")).to(tl.float32)
        new_max = tl.maximum(running_max, tl.max(block, axis=0))
        running_sum = running_sum * tl.exp(running_max - new_max) + tl.sum(tl.exp(block - new_max), axis=0)
        running_max = new_max

    is_counted = target != ignore_index
    x = tl.load(logits_ptr + target, mask=is_counted, other=0.0).to(tl.float32)
    loss = running_max + tl.log(running_sum) - x
    tl.store(loss_ptr + row, tl.where(is_counted, loss, 0.0))


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor, ignore_index: int = -100) -> torch.Tensor:
    n_tokens, vocab_size = logits.shape
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    targets = targets.contiguous()
    losses = torch.empty(n_tokens, dtype=torch.float32, device=logits.device)
    cross_entropy_kernel[(n_tokens,)](logits, targets, losses, logits.stride(0), vocab_size, ignore_index)
    return losses


def reference(logits, targets, ignore_index=-100):
    return torch.nn.functional.cross_entropy(logits.float(), targets, ignore_index=ignore_index, reduction="none")


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    n_tokens, vocab_size = (4096, 128_256) if device == "cuda" else (5, 2500)
    logits = torch.randn((n_tokens, vocab_size), device=device, dtype=torch.bfloat16)
    targets = torch.randint(0, vocab_size, (n_tokens,), device=device)
    targets[::3] = -100
    error = (cross_entropy(logits, targets) - reference(logits, targets)).abs().max().item()
    assert error < 1e-3, error
    print(f"cross entropy {n_tokens}x{vocab_size}: largest error {error:.1e}")
