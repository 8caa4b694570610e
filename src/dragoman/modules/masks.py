"""Which keys each query may see. Masks are boolean, broadcast to (B H Q K), True where visible."""

import torch
from jaxtyping import Bool
from torch import Tensor


def hide_padding(real: Bool[Tensor, "B K"]) -> Bool[Tensor, "B 1 1 K"]:
    return real[:, None, None, :]


def hide_future(queries: int, keys: int, device: torch.device | None = None) -> Bool[Tensor, "1 1 Q K"]:
    """The last query sees every key, the one before it all but one, and so on: a query sees itself.

    Counting from the end keeps this right when `keys` holds a past that `queries` does not.
    """
    return torch.ones(1, 1, queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
