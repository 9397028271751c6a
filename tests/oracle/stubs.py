"""Stand-ins for torch and its kin: enough to import a package of Triton kernels on a machine that has only Triton."""

import importlib.abc
import importlib.machinery
import sys
import types

STUBBED = {"torch", "einops", "transformers", "trl", "torchvision", "causal_conv1d", "datasets"}


class Meta(type):
    """A class that is anything: its attributes, items and calls are stand-ins again."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return make(name)

    def __call__(cls, *args, **kwargs):
        if len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], Meta):
            return args[0]
        return make(cls.__name__)

    def __getitem__(cls, _):
        return cls

    def __or__(cls, _):
        return cls

    def __iter__(cls):
        return iter(())

    def __len__(cls):
        return 0

    def __bool__(cls):
        return True

    def __int__(cls):
        return 0

    def __contains__(cls, _):
        return False

    def __enter__(cls):
        return cls

    def __exit__(cls, *_):
        return False

    def __lt__(cls, _):
        return False

    __ror__ = __or__
    __index__ = __int__
    __le__ = __gt__ = __ge__ = __lt__
    __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = __truediv__ = __floordiv__ = __or__


def make(name):
    """A fresh stand-in."""
    return Meta(name, (), {})


def constant(value):
    """A function of anything that returns `value`."""
    return lambda *args, **kwargs: value


KNOWN = {
    "__version__": "2.11.0", "hip": None, "is_available": constant(True), "get_device_capability": constant((9, 0)),
    "get_device_name": constant("NVIDIA H200"), "device_count": constant(1), "current_device": constant(0),
    "is_torch_npu_available": constant(False), "is_npu_available": constant(False),
}


class Module(types.ModuleType):
    """A module that has every attribute."""

    def __getattr__(self, name):
        if name in KNOWN:
            return KNOWN[name]
        if name.startswith("__"):
            raise AttributeError(name)
        value = make(name)
        setattr(self, name, value)
        return value


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module below the stubbed packages."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in STUBBED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = Module(spec.name)
        module.__path__ = []
        module.__version__ = "2.11.0"
        return module

    def exec_module(self, module):
        pass


class Driver:
    """A driver of a GPU that is not there."""

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget
        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self):
        return make("device")

    def get_device_interface(self):
        return sys.modules["torch"].cuda

    def get_current_device(self):
        return 0

    def get_benchmarker(self):
        return constant([1.0, 1.0, 1.0])

    def __getattr__(self, name):
        if name == "utils":
            return types.SimpleNamespace(get_device_properties=constant(
                {"max_shared_mem": 232448, "multiprocessor_count": 132, "warpSize": 32, "max_num_regs": 65536}))
        raise AttributeError(name)


def install():
    """Puts the stand-ins in place."""
    sys.meta_path.insert(0, Finder())
    import torch
    torch.version = types.SimpleNamespace(hip=None, cuda="13.0")
    try:
        import packaging.version
    except ImportError:
        import pip._vendor.packaging as packaging
        import pip._vendor.packaging.version
        sys.modules["packaging"] = packaging
        sys.modules["packaging.version"] = packaging.version
    from triton.runtime import driver
    driver.set_active(Driver())
