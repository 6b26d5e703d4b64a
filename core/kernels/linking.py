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
    getattr(_owner, _name)  # raises AttributeError here, not later when a kernel compiles

_UNNEEDED = {
    "AnnotateTypes", "DeadBranchPrune", "DumpParforDiagnostics", "FindLiterallyCalls", "InlineClosureLikes",
    "InlineInlinables", "LiteralPropagationSubPipelinePass", "LiteralUnroll", "MakeFunctionToJitFunction",
    "NoPythonSupportedFeatureValidation", "RewriteDynamicRaises", "WithLifting",
}  # fmt: skip
"""Passes for features that no kernel uses: closures, `with`, exceptions with values, literal types. These
passes took 14% of the time.
"""

_OF_ARRAYS = {"NopythonRewrites"}
"""The pass for expressions of whole arrays, which runs only for functions that allocate."""


def _link(module: Any, library: Any) -> None:
    """Link all libraries on which a library depends into a module.

    The helpers themselves come first, then the helpers that they call.
    """
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
    """Take over from the libraries of a library the actions that are needed when they are loaded.

    Numba 0.62 has no such actions.
    """
    for each in library._linking_libraries:
        if reloads := getattr(each, "_reload_init", None):
            library._reload_init.update(reloads)


class _KernelLibrary(JITCodeLibrary):
    """The code of a kernel with all its helpers, optimised once."""

    counts_references = False

    def add_llvm_module(self, module: Any) -> None:
        """Add code.

        Without this override numba would optimise each function here, before it optimises the whole.
        """
        self._final_module.link_in(module)

    def finalize(self) -> None:
        """Link, optimise, and make machine code."""
        _inherit(self)
        _link(self._final_module, self)
        self._linking_libraries = []
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Optimise the code in one run.

        numba's additional first run only gathers references in one place, to drop them.
        """
        if self.counts_references:
            super()._optimize_final_module()
            return
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _Codegen:
    """The code generator of helpers. `set_env` does nothing, as a helper has no machine code of its own."""

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
        """The code generator of this helper."""
        return _Codegen(self._codegen)

    def add_llvm_module(self, module: Any) -> None:
        """Add code to the helper's module."""
        self._final_module.link_in(module)

    def finalize(self) -> None:
        """Mark the code as complete, without a change."""
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
        """Return the code with all helpers that it calls, for a library of numba's own, as in a test."""
        if self._whole_module is None:
            self._whole_module = self.own_module().clone()
            _link(self._whole_module, self)
        return self._whole_module


class _LibraryPass(AnalysisPass):
    """A pass that makes the library to which the next pass, lowering, writes its code."""

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
    """Flags of numba that are compared only by the values that were set.

    Numba itself compares all fields at each lookup, which takes 6% of its time.
    """

    def __eq__(self, other: object) -> bool:
        return self._values == other._values if isinstance(other, _Flags) else bool(super().__eq__(other))

    def __hash__(self) -> int:
        return _HASH  # equal flags need equal hashes, and a hash of the values would take longer than `==`


_HASH = hash(Flags())


class _Typing:
    """A typing context that remembers the signature of each operation.

    numba's own context searches for it each time.

    It remembers numba's own functions only, not helpers. The default window has 10,083 operations of 241
    kinds, by function and types. Remembering saves 6% of the time.
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
        """Compile a function, without searches for unreachable objects.

        These searches took 10% of the time and found few objects.
        """
        with without_collections():
            return super().compile_extra(func)

    def define_pipelines(self) -> Any:
        """Return numba's list of passes, without the passes that no kernel needs."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        unneeded = _UNNEEDED if self.state.flags.nrt else _UNNEEDED | _OF_ARRAYS
        passes.passes = [each for each in passes.passes if each[0].__name__ not in unneeded]
        passes.add_pass_after(self.library_pass, IRLegalization)
        passes.finalize()
        return [passes]


class HelperCompiler(KernelCompiler):
    """Compiles a helper, which only kernels call: a call from Python would end the process."""

    library_pass = _PassOfHelpers
