# SPDX-License-Identifier: Apache-2.0
"""Operators along rows and element by element: softmax, activations, norms, cross entropy."""
import rung
import torch
from rung.torch._library import define, once_differentiable


def _like(x, *_):
    return torch.empty_like(x)


# --- softmax -------------------------------------------------------------------------------------------------------

def _define_softmax(name, forward, backward):
    def run(x, dim):
        return forward(x, axis=dim, out=torch.empty_like(x))

    def run_out(x, dim, out):
        forward(x, axis=dim, out=out)

    def run_backward(y, dy, dim):
        return backward(y, dy, axis=dim, out=torch.empty_like(y))

    def setup(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.dim = inputs[1]

    @once_differentiable
    def gradient(ctx, dy):
        return of_gradient(ctx.saved_tensors[0], dy, ctx.dim), None

    of_gradient = define(f"{name}_backward(Tensor y, Tensor dy, int dim) -> Tensor", run_backward, _like)
    return (define(f"{name}(Tensor x, int dim) -> Tensor", run, _like, setup, gradient),
            define(f"{name}_out(Tensor x, int dim, Tensor(a!) out) -> ()", run_out))


softmax, softmax_out = _define_softmax("softmax", rung.softmax, rung.softmax_backward)
log_softmax, log_softmax_out = _define_softmax("log_softmax", rung.log_softmax, rung.log_softmax_backward)


# --- activations ---------------------------------------------------------------------------------------------------

def _define_activation(name, forward, backward, saves_result):
    def run(x):
        return forward(x, out=torch.empty_like(x))

    def run_out(x, out):
        forward(x, out=out)

    def run_backward(saved, dy):
        return backward(saved, dy, out=torch.empty_like(saved))

    def setup(ctx, inputs, output):
        ctx.save_for_backward(output if saves_result else inputs[0])

    @once_differentiable
    def gradient(ctx, dy):
        return (of_gradient(ctx.saved_tensors[0], dy),)

    of_gradient = define(f"{name}_backward(Tensor saved, Tensor dy) -> Tensor", run_backward, _like)
    return (define(f"{name}(Tensor x) -> Tensor", run, _like, setup, gradient),
            define(f"{name}_out(Tensor x, Tensor(a!) out) -> ()", run_out))


relu, relu_out = _define_activation("relu", rung.relu, rung.relu_backward, True)
sigmoid, sigmoid_out = _define_activation("sigmoid", rung.sigmoid, rung.sigmoid_backward, True)
tanh, tanh_out = _define_activation("tanh", rung.tanh, rung.tanh_backward, True)
gelu, gelu_out = _define_activation("gelu", rung.gelu, rung.gelu_backward, False)
silu, silu_out = _define_activation("silu", rung.silu, rung.silu_backward, False)


# --- norms ---------------------------------------------------------------------------------------------------------

def _statistic(x, axes):
    """Returns an empty tensor of one number per row, of the accumulation type."""
    return x.new_empty(x.shape[:x.dim() - axes], dtype=torch.float64 if x.dtype == torch.float64 else torch.float32)


def _of_weights(x, axes, gamma):
    """Returns an empty tensor for the gradient of gamma or beta."""
    return x.new_empty(x.shape[x.dim() - axes:]) if gamma is None else torch.empty_like(gamma)


def _run_layer_norm(x, axes, gamma, beta, epsilon):
    mean, rstd, y = _statistic(x, axes), _statistic(x, axes), torch.empty_like(x)
    rung.layer_norm(x, gamma, beta, axis=-axes, axes=axes, epsilon=epsilon, mean=mean, rstd=rstd, out=y)
    return y, mean, rstd


def _fake_layer_norm(x, axes, gamma, beta, epsilon):
    return torch.empty_like(x), _statistic(x, axes), _statistic(x, axes)


def _run_rms_norm(x, axes, gamma, epsilon):
    rstd, y = _statistic(x, axes), torch.empty_like(x)
    rung.rms_norm(x, gamma, axis=-axes, axes=axes, epsilon=epsilon, rstd=rstd, out=y)
    return y, rstd


def _fake_rms_norm(x, axes, gamma, epsilon):
    return torch.empty_like(x), _statistic(x, axes)


def _run_layer_norm_backward(dy, x, mean, rstd, axes, gamma, weights):
    dx, dgamma, dbeta = _fake_layer_norm_backward(dy, x, mean, rstd, axes, gamma, weights)
    rung.layer_norm_backward(dy, x, gamma, mean=mean, rstd=rstd, axis=-axes, axes=axes,
                             dgamma=dgamma if weights else None, dbeta=dbeta if weights else None, out=dx)
    return dx, dgamma, dbeta


def _fake_layer_norm_backward(dy, x, mean, rstd, axes, gamma, weights):
    if not weights:
        return torch.empty_like(x), x.new_empty(0), x.new_empty(0)
    return torch.empty_like(x), _of_weights(x, axes, gamma), _of_weights(x, axes, gamma)


def _run_rms_norm_backward(dy, x, rstd, axes, gamma, weights):
    dx, dgamma = _fake_rms_norm_backward(dy, x, rstd, axes, gamma, weights)
    rung.rms_norm_backward(dy, x, gamma, rstd=rstd, axis=-axes, axes=axes, dgamma=dgamma if weights else None,
                           out=dx)
    return dx, dgamma


def _fake_rms_norm_backward(dy, x, rstd, axes, gamma, weights):
    return torch.empty_like(x), _of_weights(x, axes, gamma) if weights else x.new_empty(0)


_layer_norm_backward = define(
    "layer_norm_backward(Tensor dy, Tensor x, Tensor mean, Tensor rstd, int axes, Tensor? gamma, bool weights)"
    " -> (Tensor, Tensor, Tensor)", _run_layer_norm_backward, _fake_layer_norm_backward)
_rms_norm_backward = define(
    "rms_norm_backward(Tensor dy, Tensor x, Tensor rstd, int axes, Tensor? gamma, bool weights) -> (Tensor, Tensor)",
    _run_rms_norm_backward, _fake_rms_norm_backward)


def _setup_layer_norm(ctx, inputs, output):
    x, ctx.axes, gamma, _, _ = inputs
    ctx.save_for_backward(x, *output[1:], *(() if gamma is None else (gamma,)))
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


@once_differentiable
def _layer_norm_gradient(ctx, dy, *_):
    if dy is None:
        return None, None, None, None, None
    x, mean, rstd, *gamma = ctx.saved_tensors
    needs_gamma, needs_beta = ctx.needs_input_grad[2:4]
    dx, dgamma, dbeta = _layer_norm_backward(dy, x, mean, rstd, ctx.axes, gamma[0] if gamma else None,
                                             needs_gamma or needs_beta)
    return dx, None, dgamma if needs_gamma else None, dbeta if needs_beta else None, None


def _setup_rms_norm(ctx, inputs, output):
    x, ctx.axes, gamma, _ = inputs
    ctx.save_for_backward(x, output[1], *(() if gamma is None else (gamma,)))
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


@once_differentiable
def _rms_norm_gradient(ctx, dy, *_):
    if dy is None:
        return None, None, None, None
    x, rstd, *gamma = ctx.saved_tensors
    needs_gamma = ctx.needs_input_grad[2]
    dx, dgamma = _rms_norm_backward(dy, x, rstd, ctx.axes, gamma[0] if gamma else None, needs_gamma)
    return dx, None, dgamma if needs_gamma else None, None


layer_norm = define(
    "layer_norm(Tensor x, int axes, Tensor? gamma, Tensor? beta, float epsilon) -> (Tensor, Tensor, Tensor)",
    _run_layer_norm, _fake_layer_norm, _setup_layer_norm, _layer_norm_gradient)
rms_norm = define("rms_norm(Tensor x, int axes, Tensor? gamma, float epsilon) -> (Tensor, Tensor)",
                  _run_rms_norm, _fake_rms_norm, _setup_rms_norm, _rms_norm_gradient)


# --- cross entropy -------------------------------------------------------------------------------------------------

def _run_cross_entropy(x, labels, axis, reduction, smoothing, ignored, gradient):
    loss, dx = _fake_cross_entropy(x, labels, axis, reduction, smoothing, ignored, gradient)
    each = reduction == "none"
    rung.cross_entropy(x, labels, axis=axis, reduction="sum" if each else reduction, smoothing=smoothing,
                       ignored_label=ignored, losses=loss if each else None, dx=dx if gradient else None,
                       out=loss.new_empty(()) if each else loss)
    return loss, dx


def _fake_cross_entropy(x, labels, axis, reduction, smoothing, ignored, gradient):
    shape = labels.shape if reduction == "none" else ()
    loss = x.new_empty(shape, dtype=torch.float64 if x.dtype == torch.float64 else torch.float32)
    return loss, torch.empty_like(x) if gradient else x.new_empty(0)


def _setup_cross_entropy(ctx, inputs, output):
    ctx.axis, reduction, gradient = inputs[2], inputs[3], inputs[6]
    if not gradient:
        raise ValueError("rung::cross_entropy: gradient is False, and x requires one; give True")
    ctx.each = reduction == "none"
    ctx.save_for_backward(output[1], output[0])  # the loss: leads a second derivative to the error
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


@once_differentiable
def _cross_entropy_gradient(ctx, dloss, _):
    dx = None
    if dloss is not None:
        dx = ctx.saved_tensors[0]
        dx = (dx * (dloss.unsqueeze(ctx.axis) if ctx.each else dloss)).to(dx.dtype)
    return dx, None, None, None, None, None, None


cross_entropy = define(
    "cross_entropy(Tensor x, Tensor labels, int axis, str reduction, float smoothing, int ignored, bool gradient)"
    " -> (Tensor, Tensor)", _run_cross_entropy, _fake_cross_entropy, _setup_cross_entropy, _cross_entropy_gradient)
