"""numba's compiler for kernels: helpers become machine code only as parts of the kernels that call them.

numba optimises each function that it compiles, together with all functions that the function calls, and turns
the result into machine code. A helper that ten kernels and other helpers call was optimised more than ten
times, and machine code of its own was made that nothing ever called. With the two compilers of this module, a
helper is kept as the code that the front end of numba wrote. A kernel links its helpers, and the helpers of
its helpers, once, and optimises the whole once. The kernels of a sliding window compiled in 26 s of processor
time before and 12 s after; their loops take the same time.

The module derives from classes of numba that numba does not document: its libraries of code, and its list of
passes. `compile` does without this module if an installed numba lacks one of `_NEEDED`.
"""

# mypy: disable-error-code="misc, no-untyped-call"

from __future__ import annotations

from typing import Any, ClassVar

from numba.core.codegen import CPUCodegen, JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.typed_passes import IRLegalization
from numba.core.types import Function

from ..process.collector import without_collections

_NEEDED = [
    (JITCodeLibrary, "_optimize_final_module"), (JITCodeLibrary, "_get_module_for_linking"),
    (JITCodeLibrary, "_raise_if_finalized"), (CPUCodegen, "_module_pass_manager"),
]  # fmt: skip
for _owner, _name in _NEEDED:
    getattr(_owner, _name)  # raises AttributeError here, and not where a kernel compiles

_UNNEEDED = {
    "AnnotateTypes", "DeadBranchPrune", "DumpParforDiagnostics", "FindLiterallyCalls", "InlineClosureLikes",
    "InlineInlinables", "LiteralPropagationSubPipelinePass", "LiteralUnroll", "MakeFunctionToJitFunction",
    "NoPythonSupportedFeatureValidation", "RewriteDynamicRaises", "WithLifting",
}  # fmt: skip
"""Passes for what no kernel has: closures, `with`, exceptions with values, literal types. They took 14%."""

_OF_ARRAYS = {"NopythonRewrites"}
"""The pass for expressions of whole arrays, which only functions that allocate may have."""


def _link(module: Any, library: Any) -> None:
    """Link all libraries of a library into a module: helpers by themselves, after them what helpers call."""
    seen: set[Any] = set()
    todo = [*library._linking_libraries]
    while todo:
        library = todo.pop()
        if library in seen:
            continue
        seen.add(library)
        if isinstance(library, _HelperLibrary):
            todo += library._linking_libraries
            module.link_in(library.own_module(), preserve=True)
        else:
            module.link_in(library._get_module_for_linking(), preserve=True)


def _inherit(library: Any) -> None:
    """Take over what the libraries of a library need when they are loaded; numba 0.62 knows no such need."""
    for each in library._linking_libraries:
        if reloads := getattr(each, "_reload_init", None):
            library._reload_init.update(reloads)


class _KernelLibrary(JITCodeLibrary):
    """The code of a kernel with all its helpers, optimised once."""

    counts_references = False

    def add_llvm_module(self, module: Any) -> None:
        """Add code. numba would optimise each function here, before it optimises the whole."""
        self._final_module.link_in(module)

    def finalize(self) -> None:
        """Link, optimise, and make machine code."""
        _inherit(self)
        _link(self._final_module, self)
        self._linking_libraries = []
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Optimise in one run. numba's first run only gathers references in one place, to drop them there."""
        if self.counts_references:
            super()._optimize_final_module()
            return
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _Codegen:
    """The code generator of a helper. `set_env` does nothing, as a helper has no machine code of its own."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing."""


class _HelperLibrary(JITCodeLibrary):
    """The code of a helper as the front end wrote it: neither optimised nor turned into machine code."""

    counts_references = False
    _whole_module: Any = None

    @property
    def codegen(self) -> Any:
        """The code generator."""
        return _Codegen(self._codegen)

    def add_llvm_module(self, module: Any) -> None:
        """Add code."""
        self._final_module.link_in(module)

    def finalize(self) -> None:
        """Keep the code as it is."""
        self._raise_if_finalized()
        _inherit(self)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002
        """Return 0: no function of a helper has an address."""
        self._ensure_finalized()
        return 0

    def own_module(self) -> Any:
        """Return the code of this helper alone, for a library that links the helpers of helpers, too."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        """Return the code with all that the helper calls, for a library of numba's own, as in a test."""
        if self._whole_module is None:
            self._whole_module = self.own_module().clone()
            _link(self._whole_module, self)
        return self._whole_module


class _LibraryPass(AnalysisPass):
    """Makes the library that the pass of lowering, which comes next, writes its code to."""

    library: ClassVar[type[Any]]

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Make the library; the code of the function does not change."""
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.counts_references = bool(state.flags.nrt)
        state.library.enable_object_caching()
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class _PassOfKernels(_LibraryPass):
    _name = "library_of_kernel"
    library = _KernelLibrary


@register_pass(mutates_CFG=False, analysis_only=True)
class _PassOfHelpers(_LibraryPass):
    _name = "library_of_helper"
    library = _HelperLibrary


class _Flags(Flags):
    """Flags that are compared by what was set. numba compares all fields at each lookup, 6% of its time."""

    def __eq__(self, other: object) -> bool:
        return self._values == other._values if isinstance(other, _Flags) else bool(super().__eq__(other))

    def __hash__(self) -> int:
        return _HASH  # equal flags need equal hashes, and a hash of the values would take longer than `==`


_HASH = hash(Flags())


class _Typing:
    """A typing context that remembers the signature of each operation; numba's own context finds it anew.

    It remembers numba's own functions only, not helpers. The default window has 10,083 operations of 241
    kinds, by function and types. That saves 6% of the time.
    """

    _found: ClassVar[dict[Any, Any]] = {}

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a call, by the types of its arguments; None if no signature fits."""
        if kws or not isinstance(function, Function):
            return self._context.resolve_function_type(function, args, kws)
        key = function, tuple(args)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._context.resolve_function_type(function, args, kws)
        return found


class KernelCompiler(CompilerBase):
    """Compiles a kernel, which Python calls."""

    library_pass: ClassVar[type[Any]] = _PassOfKernels

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, returns: Any, flags: Any, locals_: Any
    ) -> None:
        super().__init__(_Typing(typing), target, library, args, returns, _Flags(flags), locals_)

    def compile_extra(self, func: Any) -> Any:
        """Compile a function, without searches for unreachable objects: they took 10% and found few."""
        with without_collections():
            return super().compile_extra(func)

    def define_pipelines(self) -> Any:
        """Return numba's list of passes, without those that no kernel needs."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        unneeded = _UNNEEDED if self.state.flags.nrt else _UNNEEDED | _OF_ARRAYS
        passes.passes = [each for each in passes.passes if each[0].__name__ not in unneeded]
        passes.add_pass_after(self.library_pass, IRLegalization)
        passes.finalize()
        return [passes]


class HelperCompiler(KernelCompiler):
    """Compiles a helper, which only kernels call: a call from Python would end the process."""

    library_pass = _PassOfHelpers
