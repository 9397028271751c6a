"""Autotuners that do not measure: they use the configurations that they are given."""

import sys


# A configuration is nearly chosen if it takes at most this many times as long as the fastest.
NEAR = 1.1


def _name(tuner):
    # The module is not part of the name: an original and its candidates are files with different names.
    return tuner.base_fn.__qualname__


def _errors():
    """The exceptions that Triton's own tuner takes for a configuration that does not fit."""
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime.errors import OutOfResources, PTXASError

    return OutOfResources, CompileTimeAssertionFailure, PTXASError


class _Settled(dict):
    """Configurations by their keys, with one for all missing keys."""

    def __init__(self, known, config):
        super().__init__(known)
        self.config = config

    def __contains__(self, key):
        return True

    def __missing__(self, key):
        return self.config


def _told(tuner, chosen, args, kwargs):
    """The configuration that the tuner is given, or one that its own rules allow for these arguments; `None` if it
    is given none."""
    name = chosen.get(_name(tuner))
    config = next((one for one in tuner.configs if str(one) == name), None)
    if config is None or not (tuner.early_config_prune or tuner.perf_model):
        return config
    tuner.nargs = dict(zip(tuner.arg_names, args))
    allowed = tuner.prune_configs(kwargs)
    return config if any(one is config for one in allowed) else allowed[0]


def run(original, tuner, args, kwargs, chosen, forced, stays):
    """Launches with what is chosen, for arguments that the tuner has not met; for all if it is forced. It may stay so."""
    config = _told(tuner, chosen, args, kwargs) if len(tuner.configs) > 1 else None
    if config is None:
        return original(tuner, *args, **kwargs)
    known = tuner.cache
    tuner.cache = _Settled({} if forced else known, config)
    if stays:
        return original(tuner, *args, **kwargs)
    try:
        return original(tuner, *args, **kwargs)
    except _errors():
        if forced:
            raise
    finally:
        tuner.cache = known
    return original(tuner, *args, **kwargs)


def each(original, tuner, args, kwargs, chosen):
    """Launches the given configuration. Without one, the tuner goes through its configurations as usual, with its
    hooks, once for each kind of arguments; but it launches each configuration once and takes the first that fits."""
    if _told(tuner, chosen, args, kwargs) is not None:
        return run(original, tuner, args, kwargs, chosen, True, False)
    # The tuner would use such cached results in later calls.
    tuner.do_bench, tuner.cache_results = _once, False
    module = sys.modules[type(tuner).__module__]
    if hasattr(module, "do_bench"):
        # Triton 3.1
        module.do_bench = _once
    return original(tuner, *args, **kwargs)


def _once(kernel_call, *_, **__):
    kernel_call()
    return [1.0, 1.0, 1.0]


def compile(tuner, args, kwargs, chosen):
    """Compiles the given configuration, or all configurations where none is given; returns whether it compiled all."""
    kwargs = {key: value for key, value in kwargs.items() if key != "warmup"}
    config = _told(tuner, chosen, args, kwargs)
    if config is None:
        tuner.warmup(*args, **kwargs)
        return len(tuner.configs) > 1
    tuner.fn.warmup(*args, **kwargs, **config.all_kwargs())
    return False


def tuned(tuner):
    """The tuner's name, its last choice, and the other configurations that it measured, if it had a choice."""
    timings = getattr(tuner, "configs_timings", None)
    best = getattr(tuner, "best_config", None)
    if len(tuner.configs) < 2 or best is None or not timings:
        return None
    first = lambda timing: timing[0] if isinstance(timing, (list, tuple)) else timing
    fit = {str(config): first(timing) for config, timing in timings.items() if first(timing) != float("inf")}
    others = [config for config in fit if config != str(best)]
    most = NEAR * fit.get(str(best), 0.0)
    return _name(tuner), str(best), others, sorted((config for config in others if fit[config] <= most), key=fit.get)
