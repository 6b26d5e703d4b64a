"""Processor instructions that Python lacks: bit counts, for sets held in one word, and prefetching.

A set of slots of a bucket is an int64 whose bit t stands for slot t. Slot 0 is never a member, and bit 63
is never used, so that no set is negative.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .cache_folder import COMPILED
from .compile import inlined

CACHE_LINE = 64


def _zeros_by(instruction: str) -> Any:
    """Return a numba intrinsic for the LLVM instruction that counts the zeros at one end of a word."""

    def count(typing: Any, bits: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
            return getattr(builder, instruction)(arguments[0], context.get_constant(types.boolean, False))

        return types.int64(types.int64), generate

    return count


def _prefetch(typing: Any, record: Any) -> Any:  # noqa: ARG001
    """Prefetch the cache lines of a record that will be written to soon."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        byte, word = ir.IntType(8), ir.IntType(32)
        signature_of_call = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), word, word, word])
        call = cast(Any, cgutils).get_or_insert_function(
            builder.module, signature_of_call, "llvm.prefetch.p0"
        )
        start = builder.bitcast(arguments[0], byte.as_pointer())
        to_write, keep, data = word(1), word(3), word(1)
        for offset in range(0, record.size, CACHE_LINE):
            builder.call(call, [builder.gep(start, [word(offset)]), to_write, keep, data])
        return context.get_dummy_value()

    return types.none(record), generate


def _trailing_zeros(bits: int) -> int:
    return (int(bits) & -int(bits)).bit_length() - 1 if bits else 64


def _leading_zeros(bits: int) -> int:
    return 64 - int(bits).bit_length()


def _no_prefetch(record: Any) -> None:
    """Do nothing: prefetching is useless in interpreted code."""


def _either(machine: Any, interpreted: Any) -> Any:
    """Return `machine` if kernels are compiled in this process, else `interpreted`."""
    return cast(Any, intrinsic)(machine) if COMPILED else interpreted


lowest_bit = _either(_zeros_by("cttz"), _trailing_zeros)
"""Returns the index of the lowest set bit; 64 if there is none."""

leading_zeros = _either(_zeros_by("ctlz"), _leading_zeros)
prefetch = _either(_prefetch, _no_prefetch)


@inlined
def highest_bit(bits: int) -> int:
    """Return the index of the highest set bit; 0 if there is none."""
    return 63 - leading_zeros(bits | 1)


@inlined
def bits_below(index: int) -> int:
    """Return the set {0, ..., index - 1}, for an index up to 62."""
    return (1 << index) - 1


@inlined
def bits_through(index: int) -> int:
    """Return the set {0, ..., index}, for an index up to 62; no intermediate value overflows."""
    return (1 << index) | ((1 << index) - 1)
