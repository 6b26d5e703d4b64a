"""What Beam works out again for every step of every job, worked out once in a process of tests.

Half of the time of a small job is that: Beam asks for the signature of each method of a DoFn some hundred
times, looks through all methods of a DoFn for states and timers ten times, and makes an argparse parser for
each look at its options. The answers are those of Beam itself, and depend on nothing but the function, the
class of the DoFn, or the class of options, its flags and what was set since. A thorough run does without, and
so does another Beam than the one whose inside this was written for.
"""

from __future__ import annotations

import argparse
import copy
import types
from typing import Any
from weakref import WeakKeyDictionary

import apache_beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms import core, userstate

_BEAM = "2.77."
_work_out = core.get_function_args_defaults
_parse = PipelineOptions.__init__
_tell = PipelineOptions.get_all_options
_find = userstate.get_dofn_specs
_functions: WeakKeyDictionary[Any, tuple[list[str], list[Any]]] = WeakKeyDictionary()
_methods: WeakKeyDictionary[Any, tuple[list[str], list[Any]]] = WeakKeyDictionary()
_options: dict[tuple[type, tuple[str, ...]], dict[str, Any]] = {}
_all_options: dict[Any, dict[str, Any]] = {}
_specs: WeakKeyDictionary[type, tuple[set[Any], set[Any]]] = WeakKeyDictionary()


def remember() -> None:
    """Let Beam remember, from now on, in this process."""
    if not apache_beam.__version__.startswith(_BEAM):
        return
    core.get_function_args_defaults = _arguments
    userstate.get_dofn_specs = _states_and_timers
    PipelineOptions.__init__ = _begin  # type: ignore[method-assign]
    PipelineOptions.get_all_options = _every_option  # type: ignore[method-assign]


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
        _options[key] = _own(vars(self._visible_options))
    self._flags = flags
    self._visible_options = argparse.Namespace(**_own(_options[key]))
    self._all_options = overrides
    for name, value in vars(self._visible_options).items():
        self._all_options.setdefault(name, value)


def _states_and_timers(dofn: Any) -> tuple[set[Any], set[Any]]:
    if any(isinstance(value, types.MethodType) for value in vars(dofn).values()):
        return _find(dofn)  # a method of this object alone, as where a bound method is mapped
    if type(dofn) not in _specs:
        _specs[type(dofn)] = _find(dofn)
    states, timers = _specs[type(dofn)]
    return {*states}, {*timers}


def _every_option(self: PipelineOptions, *arguments: Any, **named: Any) -> dict[str, Any]:
    """Remember by all that the answer is made of: the flags, and the values that were set since."""
    if arguments or not named.keys() <= {"drop_default", "retain_unknown_options"}:
        return _tell(self, *arguments, **named)
    known = len(PipelineOptions.__subclasses__())
    key = tuple(self._flags), repr(sorted(self._all_options.items())), known, *sorted(named.items())
    if key not in _all_options:
        _all_options[key] = _tell(self, **named)
    return _own(_all_options[key])


def _own(values: dict[str, Any]) -> dict[str, Any]:
    """Copy values of options: texts and numbers, and lists or dicts of them, which Beam may extend."""
    return {
        name: copy.copy(value) if isinstance(value, list | dict) else value for name, value in values.items()
    }
