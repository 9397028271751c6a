"""A GPU that is not there: kernels are compiled for it, and nothing is launched."""

import contextlib
import os
import types


def driver_of(capability, multiprocessors, shared):
    """What is asked of a driver until a kernel is compiled."""
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
    """Has torch say of the device what code asks for before it launches, and make tensors without contents, without looking for it."""
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
    # Tensors without contents start a device that is there.
    fake_tensor.init_gpu_context = lambda device: None
    # On them any generator draws nothing.
    of_host = torch.Generator
    torch.Generator = lambda device=None: of_host()


def compile_only(name, capability, multiprocessors, shared):
    """Has kernels compiled for a device that is there, without a connection to it: a driver makes and ends one after the other."""
    import torch
    from triton.runtime import driver

    # What torch does around tensors without contents takes the device, unless there is none.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    torch._C._ensureCUDADeviceGuardSet()
    driver.set_active(driver_of(capability, multiprocessors, shared)())
    asked(name, capability, multiprocessors, shared)


def install(name, capability, multiprocessors, shared):
    """Makes torch and Triton think that it is there, as far as code asks for it before it launches."""
    import torch
    from triton.runtime import driver

    driver.set_active(driver_of(capability, multiprocessors, shared)())
    asked(name, capability, multiprocessors, shared)
    torch.Tensor.is_cuda = True
