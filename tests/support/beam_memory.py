"""What Beam works out again for every step of every job, worked out once in a process of tests.

Half of the time of a small job is that: Beam asks for the signature of each method of a DoFn some hundred
times, and makes an argparse parser for each look at its options. The answers are those of Beam itself, and
depend on nothing but the function, or the class of options and its flags. A thorough run does without, and so
does another Beam than the one whose inside this was written for.
"""

from __future__ import annotations

import copy
import types
from typing import Any
from weakref import WeakKeyDictionary

import apache_beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms import core

_BEAM = "2.77."
_work_out = core.get_function_args_defaults
_parse = PipelineOptions.__init__
_functions: WeakKeyDictionary[Any, tuple[list[str], list[Any]]] = WeakKeyDictionary()
_methods: WeakKeyDictionary[Any, tuple[list[str], list[Any]]] = WeakKeyDictionary()
_options: dict[tuple[type, tuple[str, ...]], Any] = {}


def remember() -> None:
    """Let Beam remember, from now on, in this process."""
    if not apache_beam.__version__.startswith(_BEAM):
        return
    core.get_function_args_defaults = _arguments
    PipelineOptions.__init__ = _begin  # type: ignore[method-assign]


def _arguments(f: Any) -> tuple[list[str], list[Any]]:
    if isinstance(f, types.FunctionType):
        known, key = _functions, f
    elif isinstance(f, types.MethodType) and isinstance(f.__func__, types.FunctionType):
        known, key = _methods, f.__func__
    else:
        return _work_out(f)  # type: ignore[no-any-return]
    if key not in known:
        known[key] = _work_out(f)
    names, defaults = known[key]
    return list(names), list(defaults)


def _begin(self: PipelineOptions, flags: Any = None, **overrides: Any) -> None:
    if not isinstance(flags, list):
        _parse(self, flags, **overrides)
        return
    key = type(self), tuple(flags)
    if key not in _options:
        _parse(self, flags)
        _options[key] = copy.deepcopy(self._visible_options)
    self._flags = flags
    self._visible_options = copy.deepcopy(_options[key])
    self._all_options = overrides
    for name, value in vars(self._visible_options).items():
        self._all_options.setdefault(name, value)
