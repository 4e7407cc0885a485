"""Sixteen float32 numbers as one value inside numba kernels.

numba has no vector type, and its optimiser finds vectors in plain loops only by luck. Here a
`Lanes` value is an LLVM vector from the start: +, -, *, /, `larger`, `smaller` and `size` act
on all sixteen at once, whatever flags the kernel is compiled with.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

LANES = 16
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_BITS = ir.VectorType(ir.IntType(32), LANES)
_WITHOUT_SIGN = ir.Constant(_BITS, [0x7FFFFFFF] * LANES)


class Lanes(types.Type):
    """The type of sixteen float32 numbers side by side."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    """How LLVM holds them: in as many registers as the machine needs."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)  # type: ignore[no-untyped-call]


lanes_type = Lanes()
_item_pointer: Any = cgutils.get_item_pointer


def _instruction(emit: Callable[..., Any]) -> Any:
    """Return a function of kernels that is written in LLVM's own instructions."""
    return intrinsic(emit)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, row: Any, column: Any) -> Any:
    view = context.make_array(kind)(context, builder, array)
    first = _item_pointer(
        context, builder, kind, view, [row, column], wraparound=False, boundscheck=False
    )
    return builder.bitcast(first, _VECTOR.as_pointer())


@_instruction
def load(typing: Any, array: Any, row: Any, column: Any) -> Any:
    """Return sixteen neighbours of a row, from a column on."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args[0], *args), align=4)

    return lanes_type(array, types.intp, types.intp), emit


@_instruction
def store(typing: Any, array: Any, row: Any, column: Any, value: Any) -> Any:
    """Put sixteen neighbours into a row, from a column on."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[3], _pointer(context, builder, signature.args[0], *args[:3]), align=4)
        return context.get_dummy_value()

    return types.none(array, types.intp, types.intp, lanes_type), emit


@_instruction
def spread(typing: Any, number: Any) -> Any:
    """Return one number in all lanes."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(nothing, args[0], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, nothing, ir.Constant(_BITS, [0] * LANES))

    return lanes_type(types.float32), emit


@_instruction
def size(typing: Any, lanes: Any) -> Any:
    """Return the absolute value of each lane."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.and_(builder.bitcast(args[0], _BITS), _WITHOUT_SIGN)
        return builder.bitcast(bits, _VECTOR)

    return lanes_type(lanes), emit


def _lane_by_lane(emit_one: Callable[[Any, Any, Any], Any]) -> Any:
    """Return the function of two values that LLVM computes for all lanes at once."""

    @_instruction
    def act(typing: Any, one: Any, other: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return emit_one(builder, *args)

        return lanes_type(one, other), emit

    return act


def _chosen(sign: str) -> Any:
    return _lane_by_lane(lambda b, x, y: b.select(b.fcmp_ordered(sign, x, y), x, y))


larger, smaller = _chosen(">"), _chosen("<")


def _define(symbol: Any, act: Any) -> None:
    """Give two Lanes the operator."""

    @overload(symbol, strict=False)
    def choose(one: Any, other: Any) -> Any:
        if isinstance(one, Lanes) and isinstance(other, Lanes):
            return lambda one, other: act(one, other)
        return None


_define(operator.add, _lane_by_lane(lambda b, x, y: b.fadd(x, y)))
_define(operator.sub, _lane_by_lane(lambda b, x, y: b.fsub(x, y)))
_define(operator.mul, _lane_by_lane(lambda b, x, y: b.fmul(x, y)))
_define(operator.truediv, _lane_by_lane(lambda b, x, y: b.fdiv(x, y)))
