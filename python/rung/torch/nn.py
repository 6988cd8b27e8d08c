# SPDX-License-Identifier: Apache-2.0
"""Modules in place of torch.nn's: subclasses with the same constructors and state_dict, and rung's kernels."""
import torch
from rung.torch import functional

__all__ = ["LayerNorm", "RMSNorm", "Softmax", "LogSoftmax", "Linear", "Conv1d", "Conv2d", "Conv3d", "MaxPool2d",
           "AvgPool2d", "ReLU", "GELU", "SiLU", "CrossEntropyLoss", "replace"]


class LayerNorm(torch.nn.LayerNorm):
    """torch.nn.LayerNorm on rung.torch.layer_norm()."""

    def forward(self, input):
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(torch.nn.RMSNorm):
    """torch.nn.RMSNorm on rung.torch.rms_norm()."""

    def forward(self, x):
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)


def _implicit_dim(dim, input):
    return dim if dim is not None else 0 if input.dim() in (0, 1, 3) else 1  # as torch.nn.Softmax chooses the axis


class Softmax(torch.nn.Softmax):
    """torch.nn.Softmax on rung.torch.softmax()."""

    def forward(self, input):
        return functional.softmax(input, _implicit_dim(self.dim, input))


class LogSoftmax(torch.nn.LogSoftmax):
    """torch.nn.LogSoftmax on rung.torch.log_softmax()."""

    def forward(self, input):
        return functional.log_softmax(input, _implicit_dim(self.dim, input))


class Linear(torch.nn.Linear):
    """torch.nn.Linear on rung.torch.linear()."""

    def forward(self, input):
        return functional.linear(input, self.weight, self.bias)


class _Conv:
    """The forward pass of the three convolutions."""

    def _conv_forward(self, input, weight, bias):
        padding = self.padding
        if self.padding_mode != "zeros":
            sides = self._reversed_padding_repeated_twice
            input = torch.nn.functional.pad(input, sides, mode=self.padding_mode)
            padding = 0
        function = getattr(functional, f"conv{len(self.kernel_size)}d")
        return function(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Conv, torch.nn.Conv1d):
    """torch.nn.Conv1d on rung.torch.conv1d()."""


class Conv2d(_Conv, torch.nn.Conv2d):
    """torch.nn.Conv2d on rung.torch.conv2d()."""


class Conv3d(_Conv, torch.nn.Conv3d):
    """torch.nn.Conv3d on rung.torch.conv3d()."""


class MaxPool2d(torch.nn.MaxPool2d):
    """torch.nn.MaxPool2d on rung.torch.max_pool2d()."""

    def forward(self, input):
        return functional.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation,
                                     self.ceil_mode, self.return_indices)


class AvgPool2d(torch.nn.AvgPool2d):
    """torch.nn.AvgPool2d on rung.torch.avg_pool2d()."""

    def forward(self, input):
        return functional.avg_pool2d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                                     self.count_include_pad, self.divisor_override)


class ReLU(torch.nn.ReLU):
    """torch.nn.ReLU on rung.torch.relu()."""

    def forward(self, input):
        return functional.relu(input, self.inplace)


class GELU(torch.nn.GELU):
    """torch.nn.GELU on rung.torch.gelu(); approximate="none" alone."""

    def forward(self, input):
        return functional.gelu(input, approximate=self.approximate)


class SiLU(torch.nn.SiLU):
    """torch.nn.SiLU on rung.torch.silu()."""

    def forward(self, input):
        return functional.silu(input, self.inplace)


class CrossEntropyLoss(torch.nn.CrossEntropyLoss):
    """torch.nn.CrossEntropyLoss on rung.torch.cross_entropy(); without weights, for labels alone."""

    def forward(self, input, target):
        return functional.cross_entropy(input, target, self.weight, ignore_index=self.ignore_index,
                                        reduction=self.reduction, label_smoothing=self.label_smoothing)


_CLASSES = {getattr(torch.nn, name): globals()[name] for name in __all__ if name != "replace"}


def _has_refused_option(module):
    return (getattr(module, "approximate", "none") != "none" or getattr(module, "divisor_override", None) is not None
            or isinstance(module, torch.nn.CrossEntropyLoss) and module.weight is not None)


def replace(module):
    """Replaces all modules within `module`, and itself, by the corresponding classes of this file; parameters, buffers
    and hooks are kept. Modules with options that rung rejects are not replaced.

    >>> import torch, rung.torch.nn
    >>> rung.torch.nn.replace(torch.nn.Sequential(torch.nn.ReLU()))[0].__class__
    <class 'rung.torch.nn.ReLU'>
    """
    for each in module.modules():
        own = _CLASSES.get(type(each))
        if own is not None and not _has_refused_option(each):
            each.__class__ = own
    return module
