"""Many numbers as one value inside numba kernels.

numba has no vector type, and its optimiser finds vectors in plain loops only by luck. Here a
`Lanes` value is an LLVM vector from the start: sixteen numbers of 16 or 32 bits, or eight of 64.
+, -, *, / and the functions below act on all of them at once, whatever flags the kernel is
compiled with.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

if TYPE_CHECKING:
    from numba.core.datamodel.manager import DataModelManager
    from numba.core.typing.context import BaseContext as Typing
    from numba.core.typing.templates import Signature

Values = Sequence[ir.Value]


class Target(Protocol):
    """What numba writes instructions for."""

    def make_array(self, kind: types.Array) -> Callable[..., ir.Value]: ...

    def get_dummy_value(self) -> ir.Value: ...


# What a function of kernels is to Python: its type, and how it is written.
Emitted = tuple["Signature", Callable[[Target, ir.IRBuilder, "Signature", Values], ir.Value]]
EmitOne = Callable[[ir.IRBuilder, ir.Value, ir.Value, bool], ir.Value]
# What it is to kernels, whose values Python never sees.
Kernel = Callable[..., Any]
LANES = 16
DOUBLE_LANES = 8


class Lanes(types.Type):
    """The type of numbers of one kind side by side."""

    def __init__(self, kind: types.Type, count: int, element: ir.Type) -> None:
        self.kind, self.vector = kind, ir.VectorType(element, count)
        self.is_float = isinstance(kind, types.Float)
        super().__init__(name=f"Lanes({kind}, {count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    """How LLVM holds them: in as many registers as the machine needs."""

    def __init__(self, manager: DataModelManager, kind: Lanes) -> None:
        super().__init__(manager, kind, kind.vector)  # type: ignore[no-untyped-call]


_words = Lanes(types.int16, LANES, ir.IntType(16))
_longs = Lanes(types.int32, LANES, ir.IntType(32))
_floats = Lanes(types.float32, LANES, ir.FloatType())
_doubles = Lanes(types.float64, DOUBLE_LANES, ir.DoubleType())
_LANES_OF = {lanes.kind: lanes for lanes in (_words, _longs, _floats, _doubles)}
_item_pointer: Callable[..., ir.Value] = cgutils.get_item_pointer
_function: Callable[..., ir.Function] = cgutils.get_or_insert_function


def _instruction(emit: Callable[..., Emitted]) -> Kernel:
    """Return a function of kernels that is written in LLVM's own instructions."""
    return intrinsic(emit)


def _item(
    context: Target, builder: ir.IRBuilder, kind: types.Array, array: ir.Value, *place: ir.Value
) -> ir.Value:
    """Return where an item is; its place is known not to be negative."""
    view = context.make_array(kind)(context, builder, array)
    return _item_pointer(
        context, builder, kind, view, list(place), wraparound=False, boundscheck=False
    )


def _items(
    context: Target, builder: ir.IRBuilder, kind: types.Array, array: ir.Value, *place: ir.Value
) -> ir.Value:
    """Return where neighbours begin."""
    first = _item(context, builder, kind, array, *place)
    return builder.bitcast(first, _LANES_OF[kind.dtype].vector.as_pointer())


@_instruction
def load(typing: Typing, array: types.Array, row: types.Type, column: types.Type) -> Emitted:
    """Return neighbours of a row, from a column on."""

    def emit(
        context: Target, builder: ir.IRBuilder, signature: Signature, args: Values
    ) -> ir.Value:
        kind = signature.args[0]
        return builder.load(_items(context, builder, kind, *args), align=kind.dtype.bitwidth // 8)

    return _LANES_OF[array.dtype](array, types.intp, types.intp), emit


@_instruction
def load_from(typing: Typing, array: types.Array, start: types.Type) -> Emitted:
    """Return neighbours of an array with one axis."""

    def emit(
        context: Target, builder: ir.IRBuilder, signature: Signature, args: Values
    ) -> ir.Value:
        kind = signature.args[0]
        return builder.load(_items(context, builder, kind, *args), align=kind.dtype.bitwidth // 8)

    return _LANES_OF[array.dtype](array, types.intp), emit


@_instruction
def item(typing: Typing, array: types.Array, place: types.Type) -> Emitted:
    """Return an item of an array with one axis; unlike [place] it need not ask for the sign."""

    def emit(
        context: Target, builder: ir.IRBuilder, signature: Signature, args: Values
    ) -> ir.Value:
        return builder.load(_item(context, builder, signature.args[0], *args))

    return array.dtype(array, types.intp), emit


@_instruction
def put(typing: Typing, array: types.Array, place: types.Type, value: types.Type) -> Emitted:
    """Set an item of an array with one axis, without asking for the sign of its place."""

    def emit(
        context: Target, builder: ir.IRBuilder, signature: Signature, args: Values
    ) -> ir.Value:
        builder.store(args[2], _item(context, builder, signature.args[0], *args[:2]))
        return context.get_dummy_value()

    return types.none(array, types.intp, array.dtype), emit


@_instruction
def store(
    typing: Typing, array: types.Array, row: types.Type, column: types.Type, value: types.Type
) -> Emitted:
    """Put neighbours into a row, from a column on."""

    def emit(
        context: Target, builder: ir.IRBuilder, signature: Signature, args: Values
    ) -> ir.Value:
        kind = signature.args[0]
        pointer = _items(context, builder, kind, *args[:3])
        builder.store(args[3], pointer, align=kind.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, types.intp, types.intp, _LANES_OF[array.dtype]), emit


@_instruction
def spread(typing: Typing, number: types.Type) -> Emitted:
    """Return one number in all lanes."""
    lanes = _LANES_OF[number]

    def emit(
        context: Target, builder: ir.IRBuilder, signature: Signature, args: Values
    ) -> ir.Value:
        return _spread(builder, args[0], lanes.vector)

    return lanes(number), emit


def _spread(builder: ir.IRBuilder, number: ir.Value, vector: ir.VectorType) -> ir.Value:
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
    places = ir.VectorType(ir.IntType(32), vector.count)
    return builder.shuffle_vector(first, nothing, ir.Constant(places, [0] * vector.count))


@_instruction
def as_floats(typing: Typing, lanes: Lanes) -> Emitted:
    """Return whole numbers as float32, and float32 as they are."""

    def emit(
        context: Target, builder: ir.IRBuilder, signature: Signature, args: Values
    ) -> ir.Value:
        return args[0] if lanes.is_float else builder.sitofp(args[0], _floats.vector)

    return _floats(lanes), emit


@_instruction
def scaled(typing: Typing, lanes: Lanes, number: types.Type) -> Emitted:
    """Return the lanes times a number; of words times a word, the upper half of the product."""
    is_word = number == types.int16

    def emit(
        context: Target, builder: ir.IRBuilder, signature: Signature, args: Values
    ) -> ir.Value:
        factor = _spread(builder, args[1], _LANES_OF[number].vector)
        if not is_word:
            return builder.fmul(builder.sitofp(args[0], _floats.vector), factor)
        one, other = (builder.sext(words, _longs.vector) for words in (args[0], factor))
        half = ir.Constant(_longs.vector, [16] * LANES)
        return builder.trunc(builder.lshr(builder.mul(one, other), half), _words.vector)

    return (_words if is_word else _floats)(lanes, number), emit


@_instruction
def passed(typing: Typing, lanes: Lanes, words: types.Type, weight: types.Type) -> Emitted:
    """Return the lanes after a row, whose words are 0 where it is not in a lane's node.

    Float32 lanes add up the weights of rows that are in the node. Words count, which is sooner
    done, the rows that are not.
    """

    def emit(
        context: Target, builder: ir.IRBuilder, signature: Signature, args: Values
    ) -> ir.Value:
        nothing = ir.Constant(_words.vector, [0] * LANES)
        if not lanes.is_float:
            is_out = builder.icmp_signed("==", args[1], nothing)
            return builder.sub(args[0], builder.sext(is_out, _words.vector))
        is_in = builder.sext(builder.icmp_signed("!=", args[1], nothing), _longs.vector)
        bits = _spread(builder, builder.bitcast(args[2], ir.IntType(32)), _longs.vector)
        kept = builder.bitcast(builder.and_(is_in, bits), _floats.vector)
        return builder.fadd(args[0], kept)

    return lanes(lanes, words, weight), emit


@_instruction
def weight_of(typing: Typing, lanes: Lanes, n_rows: types.Type) -> Emitted:
    """Return as float32 the weight of the node's rows among n_rows, from lanes that passed them."""

    def emit(
        context: Target, builder: ir.IRBuilder, signature: Signature, args: Values
    ) -> ir.Value:
        if lanes.is_float:
            return args[0]
        n_rows = _spread(builder, args[1], _floats.vector)
        return builder.fsub(n_rows, builder.sitofp(args[0], _floats.vector))

    return _floats(lanes, types.float32), emit


@_instruction
def root(typing: Typing, lanes: Lanes) -> Emitted:
    """Return the square root of each lane."""

    def emit(
        context: Target, builder: ir.IRBuilder, signature: Signature, args: Values
    ) -> ir.Value:
        kind = ir.FunctionType(_floats.vector, [_floats.vector])
        name = f"llvm.sqrt.v{LANES}f32"
        return builder.call(_function(builder.module, kind, name), args)

    return _floats(lanes), emit


@_instruction
def in_lane(typing: Typing, number: types.Type, place: types.Type) -> Emitted:
    """Return a float64 in one of eight lanes, and 0 in the others."""

    def emit(
        context: Target, builder: ir.IRBuilder, signature: Signature, args: Values
    ) -> ir.Value:
        places = ir.VectorType(ir.IntType(64), DOUBLE_LANES)
        every = ir.Constant(places, list(range(DOUBLE_LANES)))
        is_own = builder.icmp_signed("==", _spread(builder, args[1], places), every)
        nothing = ir.Constant(_doubles.vector, [0.0] * DOUBLE_LANES)
        return builder.select(is_own, _spread(builder, args[0], _doubles.vector), nothing)

    return _doubles(types.float64, types.intp), emit


@_instruction
def lane(typing: Typing, lanes: Lanes, place: types.Type) -> Emitted:
    """Return the number in one of the lanes."""

    def emit(
        context: Target, builder: ir.IRBuilder, signature: Signature, args: Values
    ) -> ir.Value:
        return builder.extract_element(args[0], args[1])

    return lanes.kind(lanes, types.intp), emit


@_instruction
def where(typing: Typing, mask: types.Type, lanes: Lanes) -> Emitted:
    """Return whole numbers where a mask of words is -1, else 0."""

    def emit(
        context: Target, builder: ir.IRBuilder, signature: Signature, args: Values
    ) -> ir.Value:
        return builder.and_(_widened(builder, args[0], lanes.vector), args[1])

    return lanes(mask, lanes), emit


def _widened(builder: ir.IRBuilder, words: ir.Value, vector: ir.VectorType) -> ir.Value:
    return words if words.type == vector else builder.sext(words, vector)


def _lane_by_lane(emit_one: EmitOne) -> Kernel:
    """Return the function of two values that LLVM computes for all lanes at once.

    Words that meet longs are widened first.
    """

    @_instruction
    def act(typing: Typing, one: Lanes, other: Lanes) -> Emitted:
        def emit(
            context: Target, builder: ir.IRBuilder, signature: Signature, args: Values
        ) -> ir.Value:
            second = _widened(builder, args[1], args[0].type)
            return emit_one(builder, args[0], second, one.is_float)

        return one(one, other), emit

    return act


@_instruction
def unless(typing: Typing, one: Lanes, other: Lanes, lanes: Lanes, number: types.Type) -> Emitted:
    """Return the lanes where one is the other, and a number where it is not."""

    def emit(
        context: Target, builder: ir.IRBuilder, signature: Signature, args: Values
    ) -> ir.Value:
        is_same = builder.icmp_signed("==", args[0], _widened(builder, args[1], args[0].type))
        return builder.select(is_same, args[2], _spread(builder, args[3], lanes.vector))

    return lanes(one, other, lanes, number), emit


def _chosen(sign: str) -> Kernel:
    def emit(builder: ir.IRBuilder, x: ir.Value, y: ir.Value, is_float: bool) -> ir.Value:
        compare = builder.fcmp_ordered if is_float else builder.icmp_signed
        return builder.select(compare(sign, x, y), x, y)

    return _lane_by_lane(emit)


larger, smaller = _chosen(">"), _chosen("<")


def _sum(builder: ir.IRBuilder, x: ir.Value, y: ir.Value, is_float: bool) -> ir.Value:
    if is_float:
        return builder.fadd(x, y)
    if x.type != _words.vector:
        return builder.add(x, y)
    # Words do not turn over: they stop at the largest.
    kind = ir.FunctionType(_words.vector, [_words.vector] * 2)
    name = f"llvm.sadd.sat.v{LANES}i16"
    return builder.call(_function(builder.module, kind, name), [x, y])


def _define(symbol: Callable[..., object], act: Kernel) -> None:
    """Give two Lanes the operator."""

    @overload(symbol, strict=False)
    def choose(one: types.Type, other: types.Type) -> Kernel | None:
        if isinstance(one, Lanes) and isinstance(other, Lanes):
            return lambda one, other: act(one, other)
        return None


_define(operator.add, _lane_by_lane(_sum))
_define(operator.sub, _lane_by_lane(lambda b, x, y, f: b.fsub(x, y) if f else b.sub(x, y)))
_define(operator.mul, _lane_by_lane(lambda b, x, y, f: b.fmul(x, y) if f else b.mul(x, y)))
_define(operator.truediv, _lane_by_lane(lambda b, x, y, f: b.fdiv(x, y)))
