"""Properties of a compiled kernel."""


def parameters(compiled, function, args, kwargs):
    """The arguments of the compiled kernel in its order: integers as they are; tensors as offset, size and memory."""
    given = dict(zip(function.arg_names, args)) | kwargs
    defaults = {one.name: one.default for one in function.params if one.has_default}
    known = []
    for name, of in compiled.src.signature.items():
        if of != "constexpr":
            known.append(_parameter(given.get(name, defaults.get(name))))
    return known


def _parameter(value):
    if isinstance(value, (bool, int)):
        return (int(value), None, 0)
    if hasattr(value, "storage_offset"):
        size = value.element_size()
        span = sum((count - 1) * abs(step) for count, step in zip(value.shape, value.stride())) + 1
        return (value.storage_offset() * size, float(span * size if value.numel() else 0), _memory(value))
    return None


def memories(value):
    """A key of each tensor's memory in a value."""
    from torch.utils._pytree import tree_leaves

    return [_memory(leaf) for leaf in tree_leaves(value) if hasattr(leaf, "storage_offset")]


def _memory(tensor):
    try:
        return tensor.untyped_storage()._cdata
    except (AttributeError, NotImplementedError):
        return 0


def resources(compiled):
    """The intermediate representation, the machine code, the shared memory, the warps and the stages."""
    metadata, asm = compiled.metadata, compiled.asm
    # Triton says so itself where loads are on their way ahead.
    loads_ahead = any(word in asm["ttgir"] for word in ("async_copy_global_to_local", "async_tma_copy_global_to_local"))
    stages = metadata.num_stages if loads_ahead else 1
    return metadata.name, str(asm["ttir"]), asm["cubin"], metadata.shared, metadata.num_warps, max(stages, 1)
