"""Large products of matrices in training: our own where those are faster (native/products.cpp), else torch's."""

import torch
from jaxtyping import Float
from torch import Tensor

from dragoman import native


def product(
    a: Float[Tensor, "*N M K"],
    b: Float[Tensor, "*N K L"],
    out: Float[Tensor, "*N M L"] | None = None,
    *,
    add: bool = False,  # to what is in `out`
) -> Float[Tensor, "*N M L"]:
    """A B, for one pair or for several; either may be turned over. No slopes go through it."""
    if out is None:
        out = a.new_empty(*a.shape[:-1], b.shape[-1])
    if not native.has_own_products() or not all(map(is_plain, (a, b, out))) or is_turned(out):
        with_sum = out.addmm_ if out.dim() == 2 else out.baddbmm_
        return with_sum(a, b) if add else torch.matmul(a, b, out=out)
    library, count = native.library(), a[..., 0, 0].numel()
    assert library is not None  # or it would have no products
    if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2] or out.shape != (*a.shape[:-1], b.shape[-1]):
        raise ValueError(f"{tuple(a.shape)} times {tuple(b.shape)} is no product into {tuple(out.shape)}")
    library.product_of(
        count, is_turned(a), is_turned(b), a.shape[-2], b.shape[-1], a.shape[-1], a.data_ptr(), b.data_ptr(),
        out.data_ptr(), add, torch.get_num_threads(),
    )  # fmt: skip
    return out


def is_plain(x: Tensor) -> bool:
    """Numbers of 32 bits one after the other in this machine's memory, row by row or column by column."""
    return x.dtype == torch.float32 and x.is_cpu and x.numel() > 0 and (x.is_contiguous() or x.mT.is_contiguous())


def is_turned(x: Tensor) -> bool:
    return not x.is_contiguous()
