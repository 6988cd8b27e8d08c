# SPDX-License-Identifier: Apache-2.0
"""Registers operators in PyTorch's namespace `rung`."""
import torch

_library = torch.library.Library("rung", "DEF")
_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter
_forward_ad = torch.autograd.forward_ad


def _watchers():
    """Returns functions that are true while a tracer, mode or transform must see the calls of operators."""
    try:
        c = torch._C
        return (torch.compiler.is_compiling, c._len_torch_dispatch_stack, c._are_functorch_transforms_active,
                c._get_tracing_state)
    except AttributeError:  # another release of PyTorch: always uses the dispatcher
        return (lambda: True,) * 4


_is_compiling, _has_modes, _has_transforms, _is_tracing = _watchers()


def _no_vmap(name):
    def refuse(info, in_dims, *args, **kwargs):
        raise NotImplementedError(f"rung::{name} has no rule for torch.func.vmap; give it the batch as an axis")
    return refuse


def _refuse_tangents(name, tensors):
    """Raises for tangents of forward-mode derivatives, which PyTorch would silently drop before a kernel in Python."""
    for each in tensors:
        if each is not None and _forward_ad.unpack_dual(each).tangent is not None:
            raise NotImplementedError(f"rung::{name} has no rule for forward-mode derivatives; use backward()")


class _Refused(torch.autograd.Function):
    """Passes the first `count` tensors through; differentiating them by any tensor raises an error."""

    @staticmethod
    def forward(count, *tensors):
        return tuple(each.view_as(each) for each in tensors[:count])

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError("rung: this function has no second derivative; differentiate it once")


def once_differentiable(backward):
    """Decorates a backward function that autograd cannot differentiate. PyTorch's decorator of this name cuts the
    graph, so that autograd.grad() omits terms instead of failing."""
    def run(ctx, *grads):
        with torch.no_grad():
            outputs = backward(ctx, *grads)
        if not torch.is_grad_enabled():
            return outputs
        among = [each for each in (*grads, *ctx.saved_tensors) if each is not None and each.requires_grad]
        given = [each for each in outputs if each is not None]
        if not among or not given:
            return outputs
        refused = iter(_Refused.apply(len(given), *given, *among))
        return tuple(None if each is None else next(refused) for each in outputs)
    return run


def define(schema, run, fake=None, setup=None, backward=None):
    """Registers an operator and returns a function that calls it, with all arguments by position.

    run: kernel for tensors on CPUs and CUDA devices. fake: creates the results without values; None: the operator has
    no results and writes an argument. setup(ctx, inputs, output) and backward(ctx, *grads), which returns a tuple: the
    gradients, if the operator has any.

    The function bypasses PyTorch's dispatcher if nothing would see the call: the dispatcher costs 5 us, 8 us if a
    gradient is recorded (docs/python_torch.md).
    """
    name = schema[:schema.index("(")]
    qualified = f"rung::{name}"
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    for key in ("CPU", "CUDA"):
        _library.impl(name, run, key)
    torch.library.register_fake(qualified, fake or (lambda *args: None), lib=_library)
    if backward is not None:
        torch.library.register_autograd(qualified, backward, setup_context=setup, lib=_library)
    refuse_vmap = _no_vmap(name)
    torch.library.register_vmap(qualified, refuse_vmap, lib=_library)
    op = getattr(torch.ops.rung, name).default
    tensors = [i for i, argument in enumerate(op._schema.arguments) if "Tensor" in str(argument.type)]

    def forward(ctx, *args):
        output = run(*args)
        setup(ctx, args, output)
        return output

    recorded = transformed = None
    if backward is not None:
        recorded = type(f"rung::{name}", (torch.autograd.Function,),
                        {"forward": staticmethod(forward), "backward": staticmethod(backward)}).apply
        # torch.func.grad requires separate forward and setup functions, which cost 15 us per call. Tensors may belong
        # to an outer transform, hence call().
        transformed = type(f"rung::{name}", (torch.autograd.Function,), {
            "forward": staticmethod(lambda *args: call(*args)), "setup_context": staticmethod(setup),
            "backward": staticmethod(backward), "vmap": staticmethod(refuse_vmap)}).apply

    def call(*args):
        if _is_compiling():
            return op(*args)
        if getattr(_forward_ad, "_current_level", 0) >= 0:
            _refuse_tangents(name, [args[at] for at in tensors])
        if _has_modes() or _is_tracing():
            return op(*args)
        if _has_transforms():
            return op(*args) if transformed is None else transformed(*args)
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
