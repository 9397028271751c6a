"""A GPU that this machine does not have: kernels are compiled for it, and nothing is launched."""

import contextlib
import os
import types


def driver_of(capability, multiprocessors, shared):
    """A driver that answers the queries that Triton makes until a kernel is compiled."""
    import torch
    from triton.backends.compiler import GPUTarget

    properties = {
        "max_shared_mem": shared,
        "multiprocessor_count": multiprocessors,
        "max_num_regs": 65536,
        "warpSize": 32,
        "sm_clock_rate": 1,
        "mem_clock_rate": 1,
        "mem_bus_width": 1,
    }
    version = divmod(capability, 10)

    class Utils:
        def get_device_properties(self, device):
            return properties

    class Driver:
        utils = Utils()

        def get_current_target(self):
            return GPUTarget("cuda", capability, 32)

        def get_current_device(self):
            return 0

        def set_current_device(self, device):
            pass

        def get_current_stream(self, device=0):
            return 0

        def get_active_torch_device(self):
            return torch.device("cuda", 0)

        def get_device_capability(self, device=0):
            return version

    return Driver


def asked(name, capability, multiprocessors, shared):
    """Makes torch answer the queries about the device that code makes before it launches, and create tensors without
    contents, without accessing the device."""
    import torch
    from torch._subclasses import fake_tensor

    version = divmod(capability, 10)
    found = types.SimpleNamespace(
        name=name,
        major=version[0],
        minor=version[1],
        multi_processor_count=multiprocessors,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=shared,
        warp_size=32,
    )
    cuda = torch.cuda
    cuda.is_available = lambda: True
    cuda.device_count = lambda: 1
    cuda.current_device = lambda: 0
    cuda.get_device_name = lambda device=None: name
    cuda.get_device_capability = lambda device=None: version
    cuda.get_device_properties = lambda device=None: found
    cuda.synchronize = lambda device=None: None
    cuda.device = cuda.device_of = cuda.stream = lambda *_: contextlib.nullcontext()
    # Tensors without contents would initialize a device that exists.
    fake_tensor.init_gpu_context = lambda device: None
    # Drawing for such tensors works with any generator and draws nothing.
    of_host = torch.Generator
    torch.Generator = lambda device=None: of_host()


def compile_only(name, capability, multiprocessors, shared):
    """Makes Triton compile kernels for a device of this machine without a connection to it: a driver creates and
    ends one context at a time."""
    import torch
    from triton.runtime import driver

    # Torch's code for tensors without contents uses the device, unless there is none.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    torch._C._ensureCUDADeviceGuardSet()
    driver.set_active(driver_of(capability, multiprocessors, shared)())
    asked(name, capability, multiprocessors, shared)


def install(name, capability, multiprocessors, shared):
    """Makes torch and Triton report this GPU to code, as far as code queries it before it launches."""
    import torch
    from triton.runtime import driver

    driver.set_active(driver_of(capability, multiprocessors, shared)())
    asked(name, capability, multiprocessors, shared)
    torch.Tensor.is_cuda = True
