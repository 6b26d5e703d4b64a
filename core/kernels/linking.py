"""Linking."""

from __future__ import annotations

from typing import Any

from numba.core import codegen
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.typed_passes import IRLegalization


class _NoAddresses:
    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._owner, name)

    def set_env(self, name: str, env: Any) -> None:
        pass


def _link(module: Any, library: Any) -> None:
    found: set[Any] = set()
    todo = list(library._linking_libraries)
    while todo:
        library = todo.pop()
        if library not in found:
            found.add(library)
            is_helper = isinstance(library, _HelperLibrary)
            module.link_in(
                library.own_module() if is_helper else library._get_module_for_linking(), preserve=True
            )
            if is_helper:
                todo += library._linking_libraries


class _HelperLibrary(codegen.JITCodeLibrary):
    @property
    def codegen(self) -> Any:
        return _NoAddresses(self._codegen)

    _whole_module: Any = None

    def add_llvm_module(self, module: Any) -> None:
        self._final_module.link_in(module)

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def own_module(self) -> Any:
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        if self._whole_module is None:
            self._whole_module = self.own_module().clone()
            _link(self._whole_module, self)
        return self._whole_module


class _EntryLibrary(codegen.JITCodeLibrary):
    counts_references = False

    def add_llvm_module(self, module: Any) -> None:
        self._final_module.link_in(module)

    def finalize(self) -> None:
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        _link(self._final_module, self)
        self._linking_libraries = []
        super().finalize()

    def _optimize_final_module(self) -> None:
        if self.counts_references:
            super()._optimize_final_module()
            return
        passes, builder = self._codegen._module_pass_manager()
        with self._recorded_timings.record("Module passes", builder):
            passes.run(self._final_module, builder)


def _pass(kind: type, label: str) -> type:
    class SetLibrary(AnalysisPass):
        _name = label

        def __init__(self) -> None:
            AnalysisPass.__init__(self)

        def run_pass(self, state: Any) -> bool:
            state.library = kind(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            state.library.counts_references = bool(state.flags.nrt)
            return False

    return register_pass(mutates_CFG=False, analysis_only=True)(SetLibrary)


_HelperPass = _pass(_HelperLibrary, "helper_library")
_EntryPass = _pass(_EntryLibrary, "entry_library")


_UNNEEDED = {
    "WithLifting",
    "InlineClosureLikes",
    "RewriteDynamicRaises",
    "MakeFunctionToJitFunction",
    "InlineInlinables",
    "FindLiterallyCalls",
    "LiteralUnroll",
    "LiteralPropagationSubPipelinePass",
    "NoPythonSupportedFeatureValidation",
    "AnnotateTypes",
    "DumpParforDiagnostics",
    "DeadBranchPrune",
}


def _without_unneeded(passes: Any, state: Any) -> Any:
    unneeded = _UNNEEDED if state.flags.nrt else _UNNEEDED | {"NopythonRewrites"}
    passes.passes = [each for each in passes.passes if each[0].__name__ not in unneeded]
    return passes


class _Flags(Flags):
    def __eq__(self, other: object) -> Any:
        return self._values == other._values if isinstance(other, _Flags) else super().__eq__(other)

    def __hash__(self) -> int:
        return _FLAGS_HASH


_FLAGS_HASH = hash(Flags())


class _Compiler(CompilerBase):
    def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):
        super().__init__(typingctx, targetctx, library, args, return_type, _Flags(flags), locals)


class HelperCompiler(_Compiler):
    def define_pipelines(self) -> Any:
        passes = _without_unneeded(DefaultPassBuilder.define_nopython_pipeline(self.state), self.state)
        passes.add_pass_after(_HelperPass, IRLegalization)
        passes.finalize()
        return [passes]


class EntryCompiler(_Compiler):
    def define_pipelines(self) -> Any:
        passes = _without_unneeded(DefaultPassBuilder.define_nopython_pipeline(self.state), self.state)
        passes.add_pass_after(_EntryPass, IRLegalization)
        passes.finalize()
        return [passes]
