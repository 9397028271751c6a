"""Triton's driver class for the first device, for environments without torch."""


def install(capability, milliseconds):
    """Makes Triton use this driver. `milliseconds(call, times)` measures calls."""
    from triton.backends.driver import GPUDriver
    from triton.backends.nvidia.driver import CudaDriver
    from triton.runtime import driver

    class Driver(CudaDriver):
        """A driver that uses one device and its default stream for everything."""

        def __init__(self):
            # Releases before 3.8 query torch there.
            asks = GPUDriver.__init__
            GPUDriver.__init__ = lambda self: None
            try:
                super().__init__()
            finally:
                GPUDriver.__init__ = asks
            self.get_device_capability = lambda device=0: tuple(capability)
            self.get_current_stream = lambda device=0: 0
            self.get_current_device = lambda: 0
            self.set_current_device = lambda device: None

        def get_benchmarker(self):
            return bench

    def bench(call, quantiles=(0.5, 0.2, 0.8), **_):
        milliseconds(call, 1)
        times = sorted(milliseconds(call, 10))
        return [times[round(quantile * (len(times) - 1))] for quantile in quantiles]

    driver.set_active(Driver())
