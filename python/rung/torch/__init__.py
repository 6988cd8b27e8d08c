# SPDX-License-Identifier: Apache-2.0
"""rung's kernels as operators of PyTorch: with gradients, under torch.compile, on the CPU and CUDA devices.

Importing registers them in the namespace `rung` (torch.ops.rung). rung.torch.functional has functions with the
signatures of torch.nn.functional, which are here, too; rung.torch.nn has modules in place of torch.nn's.

>>> import torch, rung.torch
>>> x = torch.zeros(2, requires_grad=True)
>>> rung.torch.softmax(x, 0)[0].backward()
>>> x.grad
tensor([ 0.2500, -0.2500])
"""
from rung.torch import functional, nn
from rung.torch.functional import *  # noqa: F403

__all__ = ["functional", "nn", *functional.__all__]
