"""Patterns for names and addresses: text with whole-number expressions, as `10.{leaf}.0.{place+2}`.

An expression has numbers, the names that its pattern may use, `+ - * // %` and brackets, and
nothing else; `{leaf:02}` pads with zeros. What is not like this is refused when the pattern is
read, with what may stand there.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_LONGEST = 200
"""Characters of a pattern: more is no name."""

_OPERATORS: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


class PatternError(ValueError):
    """What is wrong with a pattern, and the mend behind a semicolon."""


@dataclass(frozen=True)
class Pattern:
    """A pattern that has been read; the same for any number of values."""

    text: str
    parts: tuple[str | tuple[ast.expr, str], ...]
    """Plain text, or an expression with its format."""

    def fill(self, values: Mapping[str, int]) -> str:
        """The text for these values.

        Raises:
            PatternError: A division by zero, or a number below zero.
        """
        return "".join(
            part if isinstance(part, str) else self._number(part, values) for part in self.parts
        )

    def _number(self, part: tuple[ast.expr, str], values: Mapping[str, int]) -> str:
        expression, form = part
        try:
            number = _value(expression, values)
        except ZeroDivisionError:
            raise PatternError(
                f"{self.text!r} divides by zero{_where(values)}; mend the divisor"
            ) from None
        if number < 0:
            raise PatternError(f"{self.text!r} gives {number}{_where(values)}; use 0 or more")
        return format(number, form)


def read(text: str, names: Sequence[str]) -> Pattern:
    """The pattern, in which `names` stand for numbers.

    Raises:
        PatternError: It is not a pattern, or uses another name.
    """
    if len(text) > _LONGEST:
        raise PatternError(f"has {len(text)} characters; use {_LONGEST} at most")
    parts: list[str | tuple[ast.expr, str]] = []
    for index, part in enumerate(re.split(r"\{([^{}]*)\}", text)):
        if index % 2 == 0:
            if "{" in part or "}" in part:
                raise PatternError(f"{text!r} has a bracket without its other half; close it")
            parts.append(part)
        else:
            parts.append(_expression(part, names))
    return Pattern(text, tuple(parts))


def _expression(text: str, names: Sequence[str]) -> tuple[ast.expr, str]:
    inside, colon, form = text.partition(":")
    if colon and not re.fullmatch(r"0[1-9]", form):
        raise PatternError(f"{{{text}}} has the format {form!r}; use :02 for two digits, or none")
    try:
        expression = ast.parse(inside.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise PatternError(f"{{{text}}} is no expression; write one as {{{names[0]}+1}}") from None
    _check(expression, text, names)
    return expression, form


def _check(node: ast.expr, text: str, names: Sequence[str]) -> None:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return
        case ast.Name(id=name) if name in names:
            return
        case ast.Name(id=name):
            known = ", ".join(names)
            raise PatternError(f"{{{text}}} uses {name!r}; the names here are {known}")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            _check(left, text, names)
            _check(right, text, names)
        case _:
            raise PatternError(f"{{{text}}} is more than whole numbers; use names and + - * // %")


def _value(node: ast.expr, values: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.Name(id=name):
            return values[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, values), _value(right, values))
    raise AssertionError("patterns are checked when they are read")


def _where(values: Mapping[str, int]) -> str:
    first = next(iter(values.items()), None)
    return f" for {first[0]} {first[1]}" if first else ""
