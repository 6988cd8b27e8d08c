# SPDX-License-Identifier: Apache-2.0
"""Registers operators in PyTorch's namespace `rung`."""
import torch

_library = torch.library.Library("rung", "DEF")
_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter


def _watchers():
    """Functions that are true while something has to see the calls of operators: tracers, modes, transforms."""
    try:
        c = torch._C
        return (torch.compiler.is_compiling, c._len_torch_dispatch_stack, c._are_functorch_transforms_active,
                c._get_tracing_state)
    except AttributeError:  # of another release of PyTorch: the dispatcher knows
        return (lambda: True,) * 4


_is_compiling, _has_modes, _has_transforms, _is_tracing = _watchers()


def _no_vmap(name):
    def refuse(info, in_dims, *args, **kwargs):
        raise NotImplementedError(f"rung::{name} has no rule for torch.func.vmap; give it the batch as an axis")
    return refuse


def define(schema, run, fake=None, setup=None, backward=None):
    """Registers an operator and returns a function that calls it, with all arguments by position.

    run: kernel for tensors on CPUs and CUDA devices. fake: makes the results without values; None: there are none,
    the operator writes an argument. setup(ctx, inputs, output), backward(ctx, *grads): the gradient, if it has one.

    The function leaves PyTorch's dispatcher out where nothing would see the call: it costs two to four times as much as
    the kernel's own call (docs/python_torch.md).
    """
    name = schema[:schema.index("(")]
    qualified = f"rung::{name}"
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    for key in ("CPU", "CUDA"):
        _library.impl(name, run, key)
    torch.library.register_fake(qualified, fake or (lambda *args: None), lib=_library)
    if backward is not None:
        torch.library.register_autograd(qualified, backward, setup_context=setup, lib=_library)
    torch.library.register_vmap(qualified, _no_vmap(name), lib=_library)
    op = getattr(torch.ops.rung, name).default
    tensors = [i for i, argument in enumerate(op._schema.arguments) if "Tensor" in str(argument.type)]

    def forward(ctx, *args):
        output = run(*args)
        setup(ctx, args, output)
        return output

    recorded = None
    if backward is not None:
        recorded = type(f"rung::{name}", (torch.autograd.Function,),
                        {"forward": staticmethod(forward), "backward": staticmethod(backward)}).apply

    def call(*args):
        if _is_compiling() or _has_modes() or _has_transforms() or _is_tracing():
            return op(*args)
        needs_gradient = False
        for at in tensors:
            each = args[at]
            if each is None:
                continue
            kind = type(each)
            if kind is not _Tensor and kind is not _Parameter or not (each.is_cpu or each.is_cuda) or each.is_neg():
                return op(*args)
            if each.requires_grad:
                needs_gradient = True
        if needs_gradient and recorded is not None and torch.is_grad_enabled():
            return recorded(*args)
        return run(*args)

    return call
