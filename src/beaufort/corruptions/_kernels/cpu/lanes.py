"""Vectors of neighboring values, for kernels that weight them repeatedly.

A loop over places inside a loop over taps reads and writes its sums at every tap. Turned inside out, the sums
of some places stay in registers until all taps are added; but the compiler does not turn loops. A value of
this module is `LANES` values of an array side by side, and sums, products and `fma` of such values are
rounded as those of single ones. Nothing is fused that is not spelled `fma`. Arrays are contiguous and have
room for all lanes; nobody checks indices.

Floats are held in vectors of 32 bytes, although some processors have wider ones: a load of 64 bytes lies
across two lines of the cache unless it begins at one, and neighbors begin anywhere.
"""

from __future__ import annotations

import operator
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, overload, register_model

LANES = 48
"""A few vectors of 32 bytes: enough to keep the processor busy, and few enough to stay in its registers."""


class Lanes(types.Type):
    """`LANES` values of one type."""

    def __init__(self, of):
        self.of = of
        super().__init__(f"Lanes({of})")


_WIDTHS = {"float": 8, "double": 4, "i32": 8, "i16": 16, "i8": 16}


def _vectors(value, width=None):
    """Their LLVM type."""
    width = width or _WIDTHS[str(value)]
    return ir.ArrayType(ir.VectorType(value, width), LANES // width)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, _vectors(manager.lookup(kind.of).get_value_type()))


@intrinsic
def pointer(typing_context, array):
    """Where an array's values are: it is not counted as a use, so that loops do not count uses.

    The array must be an argument of the kernel. One that the kernel made may be freed after its last use.
    """
    signature = types.CPointer(array.dtype)(array)

    def code(context, builder, signature, arguments):
        return context.make_array(signature.args[0])(context, builder, *arguments).data

    return signature, code


def _places(builder, start, index, width=None):
    """Return pointers to the vectors of the values from `index` on."""
    whole = _vectors(start.type.pointee, width)
    first = builder.bitcast(builder.gep(start, [index]), whole.element.as_pointer())
    return [builder.gep(first, [ir.Constant(ir.IntType(64), i)]) for i in range(whole.count)]


def _gather(builder, parts):
    whole = ir.Constant(ir.ArrayType(parts[0].type, len(parts)), ir.Undefined)
    for i, part in enumerate(parts):
        whole = builder.insert_value(whole, part, i)
    return whole


def _parts(builder, whole):
    return [builder.extract_value(whole, i) for i in range(whole.type.count)]


@intrinsic
def load(typing_context, start, at):
    """The values from `at` on."""
    signature = Lanes(start.dtype)(start, numba.intp)

    def code(context, builder, signature, arguments):
        align = start.dtype.bitwidth // 8
        return _gather(builder, [builder.load(p, align=align) for p in _places(builder, *arguments)])

    return signature, code


@intrinsic
def load_floats(typing_context, start, at):
    """Small integers from `at` on, as float32."""
    signature = Lanes(types.float32)(start, numba.intp)

    def code(context, builder, signature, arguments):
        real = _vectors(ir.FloatType())
        places = _places(builder, *arguments, real.element.count)
        found = [builder.load(place, align=start.dtype.bitwidth // 8) for place in places]
        return _gather(builder, [builder.uitofp(part, real.element) for part in found])

    return signature, code


@intrinsic
def store(typing_context, start, at, lanes):
    """Store values from `at` on."""
    signature = numba.void(start, numba.intp, lanes)

    def code(context, builder, signature, arguments):
        start_, at_, value = arguments
        for place, part in zip(_places(builder, start_, at_), _parts(builder, value), strict=True):
            builder.store(part, place, align=start.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return signature, code


@intrinsic
def one(typing_context, start, at):
    """A single value."""
    signature = start.dtype(start, numba.intp)

    def code(context, builder, signature, arguments):
        return builder.load(builder.gep(arguments[0], [arguments[1]]))

    return signature, code


@intrinsic
def splat(typing_context, value):
    """Return a vector of one number."""
    signature = Lanes(value)(value)

    def code(context, builder, signature, arguments):
        (value_,) = arguments
        whole = _vectors(value_.type)
        vector = whole.element
        empty = ir.Constant(vector, ir.Undefined)
        first = builder.insert_element(empty, value_, ir.Constant(ir.IntType(32), 0))
        part = builder.shuffle_vector(
            first, empty, ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
        )
        return _gather(builder, [part] * whole.count)

    return signature, code


def _each(builder, operation, arguments):
    parts = zip(*(_parts(builder, value) for value in arguments), strict=True)
    return _gather(builder, [operation(*part) for part in parts])


@intrinsic
def fma(typing_context, a, b, c):
    """a·b + c with one rounding."""

    def code(context, builder, signature, arguments):
        vector = arguments[0].type.element
        kind = ir.FunctionType(vector, [vector] * 3)
        name = f"llvm.fma.v{vector.count}f{a.of.bitwidth}"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return _each(builder, lambda *p: builder.call(function, p), arguments)

    return a(a, b, c), code


def _operation(real: str, whole: str) -> Any:
    """An instruction on two values: its names for floats and for integers."""

    @intrinsic
    def operation(typing_context, a, b):
        name = real if isinstance(a.of, types.Float) else whole

        def code(context, builder, signature, arguments):
            return _each(builder, getattr(builder, name), arguments)

        return a(a, b), code

    return operation


_plus, _minus, _times = _operation("fadd", "add"), _operation("fsub", "sub"), _operation("fmul", "mul")


def _call(operation):
    """Return it as a function, as Numba requires."""

    def call(a, b):
        return operation(a, b)

    return call


def _both(a, b):
    return isinstance(a, Lanes) and a == b


@overload(operator.add)
@overload(operator.iadd)
def _add(a, b):
    return _call(_plus) if _both(a, b) else None


@overload(operator.sub)
def _subtract(a, b):
    return _call(_minus) if _both(a, b) else None


@overload(operator.mul)
def _multiply(a, b):
    return _call(_times) if _both(a, b) else None
