"""What cases have in common: who they are, what they draw, and how they compare."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class World:
    """What a case gets: its rank, how many there are, and a Gloo group beside the default one."""

    rank: int
    size: int
    gloo: Any
    backend: str


CASES: dict[str, Callable[[World], None]] = {}
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
WHOLE = [torch.uint8, torch.int8, torch.int32, torch.int64]


def case(of: Callable[[World], None]) -> Callable[[World], None]:
    """Note a case."""
    CASES[of.__name__] = of
    return of


def draw(seed: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """The same tensor wherever it is drawn."""
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    return torch.randint(0, 100, shape, generator=generator).to(dtype)


def same(ours: Any, theirs: Any, exact: bool = True) -> None:
    """Compare tensors, or lists of them."""
    how = {"rtol": 0, "atol": 0} if exact else {}
    torch.testing.assert_close(ours, theirs, equal_nan=True, **how)
