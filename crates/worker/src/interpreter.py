"""Triton's interpreter, which runs kernels on simulated devices, with fewer look-ups.

For each launch, and again for each call of a function inside, the interpreter puts its own functions in place of
Triton's and searches all of `triton.language` for them, which takes half of its time. This module keeps which
functions it replaces, and when."""


def hasten():
    from triton.runtime import interpreter

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
