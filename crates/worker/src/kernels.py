"""The kernels that the device runs, as its driver lists them."""

import torch


class Listing:
    """A context manager that lists kernels; afterwards `names` has those that ran, or `None` where the driver cannot
    list them."""

    def __init__(self):
        self.names, self._seen = None, None

    def __enter__(self):
        from torch.profiler import ProfilerActivity, profile

        self._seen = profile(activities=[ProfilerActivity.CUDA])
        self._seen.__enter__()

    def __exit__(self, *error):
        from torch.autograd import DeviceType

        torch.cuda.synchronize()
        self._seen.__exit__(*error)
        events = self._seen.events()
        self.names = sorted({event.name for event in events if event.device_type == DeviceType.CUDA}) or None
