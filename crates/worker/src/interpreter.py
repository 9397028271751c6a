"""Triton's interpreter, which runs kernels on simulated devices, without work that changes no result.

That work takes three quarters of the interpreter's time."""

import dataclasses
import functools


def hasten():
    from triton.runtime import interpreter

    leave_out_overflow(interpreter)
    type_tuples_later(interpreter.tl.core)
    keep_shapes(interpreter.tl.core)
    keep_types(interpreter)
    look_up_once(interpreter)


def leave_out_overflow(interpreter):
    """Leaves out that each sum, difference and product of integers is calculated once more in 64 bits: the interpreter
    asserts that both are equal only where `debug` is set."""
    builder = interpreter.interpreter_builder
    if not builder.options.debug:
        builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)


def type_tuples_later(core):
    """Lets a tuple find its type when it is asked for it. Each tensor makes tuples of its shape, and nothing asks for
    their types."""
    if not hasattr(core, "_type_for_tuple_values"):
        return  # a release that does it otherwise
    made = core.tuple.__init__

    def make(self, args, type=None):
        if type is None:
            self.values = list(args)
        else:
            made(self, args, type)

    core.tuple.__init__ = make
    core.tuple.type = functools.cached_property(lambda self: core._type_for_tuple_values(self.values))
    core.tuple.type.__set_name__(core.tuple, "type")


def keep_shapes(core):
    """Keeps which shapes blocks may have."""
    made, kept = core.block_type.__init__, {}

    def make(self, element_ty, shape):
        # 4 is a size and 4.0 is none, although they are equal.
        key = (*shape, *map(type, shape))
        if key in kept:
            self.element_ty = element_ty
            self.shape, self.numel, begin = kept[key]
            self.name = f"{begin}{element_ty}>"
        else:
            made(self, element_ty, shape)
            kept[key] = self.shape, self.numel, f"<{self.shape}, "

    core.block_type.__init__ = make


def keep_types(interpreter):
    """Keeps which type of numpy's stands for which of Triton's. The interpreter makes a table of all for each look-up."""
    found = interpreter._get_np_dtype
    kept = functools.cache(found)
    interpreter._get_np_dtype = lambda type: found(type) if type.scalar.is_ptr() else kept(type.scalar)


def look_up_once(interpreter):
    """Keeps which functions of Triton's the interpreter replaces, and when. For each launch, and again for each call of
    a function inside, it puts its own functions in place of Triton's and searches all of `triton.language` for them."""
    if not hasattr(interpreter, "_LangPatchScope"):
        return  # a release that does it otherwise
    patch_attr, patch_lang, language = interpreter._patch_attr, interpreter._patch_lang, interpreter.tl
    is_builtin, names = language.core.is_builtin, {}

    def patch_builtin(package, *rest):
        if package not in names:
            members = interpreter.inspect.getmembers(package)
            names[package] = [name for name, member in members if is_builtin(member)]
        for name in names[package]:
            member = getattr(package, name)
            if is_builtin(member):
                patch_attr(package, name, member, *rest)

    def patch(function):
        if is_builtin(language.load) or is_builtin(language.core.load):
            return patch_lang(function)
        return interpreter._LangPatchScope()  # all is in place: a call inside a launch

    interpreter._patch_builtin = patch_builtin
    interpreter._patch_lang = patch
