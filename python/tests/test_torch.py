# SPDX-License-Identifier: Apache-2.0
"""rung.torch on the CPU: results against PyTorch, gradients, torch.compile, and rejected arguments."""
import doctest
import shutil
import threading

import pytest

torch = pytest.importorskip("torch")
import rung  # noqa: E402
import rung.torch  # noqa: E402
import torch._inductor.config as inductor_config  # noqa: E402
import torch.utils.checkpoint  # noqa: E402
from torch_cases import CASES, TWICE, attention_tensors, operator_calls, random, tensors  # noqa: E402

CLOSE = {torch.float64: {"rtol": 1e-10, "atol": 1e-11}, torch.float32: {"rtol": 2e-5, "atol": 2e-5},
         torch.bfloat16: {"rtol": 2e-2, "atol": 3e-2}}


def gradients(result, inputs):
    weights = random(*result.shape, dtype=result.dtype, seed=99)
    return torch.autograd.grad((result * weights).sum(), inputs)


@pytest.mark.parametrize("dtype", CLOSE, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_pytorchs(name, dtype):
    ours, theirs, _ = CASES[name]
    inputs = tensors(name, dtype, gradient=True)
    got, expected = ours(*inputs), theirs(*inputs)
    assert got.dtype == expected.dtype
    torch.testing.assert_close(got, expected, **CLOSE[dtype])
    for mine, other in zip(gradients(got, inputs), gradients(expected, inputs), strict=True):
        torch.testing.assert_close(mine, other, **CLOSE[dtype])
    with torch.no_grad():
        torch.testing.assert_close(ours(*inputs), expected, **CLOSE[dtype])


@pytest.mark.parametrize("name", CASES)
def test_gradcheck(name):
    assert torch.autograd.gradcheck(CASES[name][0], tensors(name, gradient=True))


@pytest.mark.parametrize("name", TWICE)
def test_gradgradcheck(name):
    assert torch.autograd.gradgradcheck(CASES[name][0], tensors(name, gradient=True))


CALLS = list(operator_calls())


@pytest.mark.parametrize("at", range(len(CALLS)), ids=[f"{i}-{op}" for i, (op, _) in enumerate(CALLS)])
def test_opcheck(at):
    op, arguments = CALLS[at]
    torch.library.opcheck(op.default, arguments)


def test_opcheck_sees_every_operator():
    registered = {name.split("::")[1].split(".")[0] for name in torch._C._dispatch_get_all_op_names()
                  if name.startswith("rung::")}
    assert registered == {str(op).split(".")[-1] for op, _ in CALLS}


@pytest.mark.parametrize("name", CASES)
def test_dispatched_calls_give_the_same_bits(name):
    """Under a mode that watches operators the dispatcher is used, otherwise not."""
    class Watcher(torch.utils._python_dispatch.TorchDispatchMode):
        seen = ()

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.seen += (function.namespace,)
            return function(*args, **(kwargs or {}))

    inputs = tensors(name, torch.float32, gradient=True)
    direct = CASES[name][0](*inputs)
    with Watcher() as watcher:
        dispatched = CASES[name][0](*inputs)
    assert "rung" in watcher.seen
    assert torch.equal(direct, dispatched) and direct.stride() == dispatched.stride()
    for mine, other in zip(gradients(direct, inputs), gradients(dispatched, inputs), strict=True):
        assert torch.equal(mine, other)


# --- torch.compile -------------------------------------------------------------------------------------------------

def everything(x, w, image, filters):
    y = rung.torch.relu(rung.torch.linear(rung.torch.softmax(x, -1), w))
    y = rung.torch.layer_norm(y, y.shape[-1])
    features = rung.torch.max_pool2d(rung.torch.conv2d(image, filters, padding=1), 2)
    loss = rung.torch.cross_entropy(y, torch.zeros(y.shape[0], dtype=torch.int64))
    q = x.reshape(1, 2, 2, 6)
    loss = loss + rung.torch.scaled_dot_product_attention(q, q, q, is_causal=True).square().sum()
    return loss + rung.torch.avg_pool2d(features, 2).sum() + rung.torch.gelu(y).sum()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiles_without_a_graph_break(backend):
    if backend == "inductor" and shutil.which("g++") is None:
        pytest.skip("no g++")
    inputs = [random(*shape, dtype=torch.float32).requires_grad_()
              for shape in ((4, 6), (5, 6), (2, 3, 8, 8), (4, 3, 3, 3))]
    with inductor_config.patch(compile_threads=1):  # no compiler processes
        got, expected = torch.compile(everything, fullgraph=True, backend=backend)(*inputs), everything(*inputs)
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
        for mine, other in zip(torch.autograd.grad(got, inputs), torch.autograd.grad(expected, inputs)):
            torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)


def test_compiles_out_and_sizes_that_change():
    def into(x, y):
        return rung.torch.softmax(x, -1, out=y), rung.torch.relu(x, inplace=True)

    compiled = torch.compile(into, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (3, 4):
        x = random(rows, 5)
        y, expected = torch.empty_like(x), torch.softmax(x, -1)
        relu = x.relu()
        compiled(x, y)
        torch.testing.assert_close(y, expected)
        assert torch.equal(x, relu)


def test_fake_and_meta_tensors_have_results():
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        y = rung.torch.conv2d(torch.empty(2, 3, 8, 8), torch.empty(4, 3, 3, 3))
    assert y.shape == (2, 4, 6, 6)
    assert rung.torch.softmax(torch.empty(2, 3, device="meta"), 0).device.type == "meta"


def test_checkpoint_gives_the_same_gradient():
    x = random(3, 4).requires_grad_()
    y = torch.utils.checkpoint.checkpoint(lambda x: rung.torch.softmax(x, -1), x, use_reentrant=False)
    torch.testing.assert_close(gradients(y, x), gradients(torch.softmax(x, -1), x))


# --- layouts -------------------------------------------------------------------------------------------------------

def laid_out(x, layout):
    if layout == "transposed":
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "second":
        return torch.stack((x, x), -1)[..., 0]
    if layout == "offset":
        return torch.cat((x.new_zeros(3), x.flatten()))[3:].view(x.shape)
    return x[:1].expand_as(x)


@pytest.mark.parametrize("layout", ["transposed", "second", "offset", "expanded"])
@pytest.mark.parametrize("name", CASES)
def test_layouts(name, layout):
    ours, theirs, _ = CASES[name]
    inputs = [laid_out(each, layout) for each in tensors(name)]
    torch.testing.assert_close(ours(*inputs), theirs(*inputs), **CLOSE[torch.float64])
    for each in inputs:
        each.requires_grad_()
    got, expected = (gradients(function(*inputs), inputs) for function in (ours, theirs))
    for mine, other in zip(got, expected, strict=True):
        torch.testing.assert_close(mine, other, **CLOSE[torch.float64])


def test_negated_views():
    """The imaginary part of a conjugate is negated by a bit of the tensor, not in memory."""
    x = torch.conj(torch.view_as_complex(random(3, 4, 2))).imag
    assert x.is_neg()
    torch.testing.assert_close(rung.torch.softmax(x, -1), torch.softmax(x, -1))


@pytest.mark.parametrize("name", ["conv2d", "conv3d", "max_pool2d", "avg_pool2d", "relu", "softmax"])
def test_channels_last_stays(name):
    ours, theirs, shapes = CASES[name]
    format_ = {4: torch.channels_last, 5: torch.channels_last_3d}.get(len(shapes[0]))
    x, *others = tensors(name)
    if format_ is not None:
        x = x.contiguous(memory_format=format_)
    x.requires_grad_()
    got, expected = ours(x, *others), theirs(x, *others)
    torch.testing.assert_close(got, expected)
    if name != "conv3d":  # conv3d's layout depends on PyTorch's backend
        assert got.stride() == expected.stride()
    torch.testing.assert_close(*(gradients(each, x)[0] for each in (got, expected)))


@pytest.mark.parametrize("function, shapes", [
    (lambda x: rung.torch.softmax(x, -1), [(0, 3)]), (lambda x: rung.torch.softmax(x, 0), [(0, 3)]),
    (rung.torch.gelu, [(2, 0)]), (lambda x, w: rung.torch.layer_norm(x, 3, w), [(0, 3), (3,)]),
    (rung.torch.linear, [(0, 3), (2, 3), (2,)]), (rung.torch.linear, [(2, 0), (3, 0), (3,)]),
    (rung.torch.attention, [(2, 2, 0, 3), (2, 2, 4, 3), (2, 2, 4, 3)]),
    (rung.torch.attention, [(2, 2, 4, 3), (2, 2, 0, 3), (2, 2, 0, 3)]),
    (rung.torch.gemm, [(2, 0), (0, 3)]), (rung.torch.conv2d, [(0, 2, 4, 4), (3, 2, 3, 3), (3,)]),
    (lambda x: rung.torch.max_pool2d(x, 2), [(0, 2, 4, 4)]), (lambda x: rung.torch.avg_pool2d(x, 2), [(2, 0, 4, 4)])])
def test_empty_tensors(function, shapes):
    inputs = [torch.ones(shape, requires_grad=True) for shape in shapes]
    result = function(*inputs)
    result.sum().backward()
    assert all(each.grad.shape == each.shape for each in inputs)


# --- functions without a counterpart in PyTorch --------------------------------------------------------------------

@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    q, k, v = attention_tensors()
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
    got = rung.torch.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(rung.torch.attention(q, k, v, causal=causal), expected)
    torch.testing.assert_close(rung.torch.scaled_dot_product_attention(q[0], k[0], v[0], scale=0.5, enable_gqa=True),
                               torch.nn.functional.scaled_dot_product_attention(q[:1], k[:1], v[:1], scale=0.5,
                                                                                enable_gqa=True)[0])
    bshd = q.transpose(1, 2).contiguous().transpose(1, 2)
    assert rung.torch.attention(bshd, k, v).stride() == bshd.stride()
    behind = torch.arange(5)[:, None] - torch.arange(5)
    torch.testing.assert_close(
        rung.torch.attention(q, k, v, causal=True, window=2),
        torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=(behind >= 0) & (behind < 2),
                                                         enable_gqa=True))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_attention_takes_masks(dtype):
    q, k, v = attention_tensors(dtype, heads=4)
    seen = torch.rand(2, 1, 5, 5, generator=torch.Generator().manual_seed(0)) < 0.6
    seen[..., 2] = True
    added = torch.linspace(-2, 2, 25, dtype=dtype).reshape(5, 5)
    close = {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {}
    for mask in (seen, seen[0, 0], added, added.masked_fill(~seen[1, 0], -torch.inf)):
        torch.testing.assert_close(rung.torch.scaled_dot_product_attention(q, k, v, mask),
                                   torch.nn.functional.scaled_dot_product_attention(q, k, v, mask), **close)
    torch.testing.assert_close(rung.torch.scaled_dot_product_attention(q[0], k[0], v[0], added),
                               torch.nn.functional.scaled_dot_product_attention(q[:1], k[:1], v[:1], added)[0], **close)
    seen[..., :] = False
    assert not rung.torch.scaled_dot_product_attention(q, k, v, seen).any()


def test_attention_options():
    q, k, v = attention_tensors(heads=4)
    scores = 3 * torch.tanh(q @ k.transpose(2, 3) / 8 ** 0.5 / 3)
    torch.testing.assert_close(rung.torch.attention(q, k, v, soft_cap=3), torch.softmax(scores, -1) @ v)
    slopes, sinks = torch.linspace(0, 1, 4, dtype=q.dtype), torch.linspace(-1, 1, 4, dtype=q.dtype)
    behind = (torch.arange(5)[:, None] - torch.arange(5)).abs()
    weights = torch.exp(q @ k.transpose(2, 3) / 8 ** 0.5 - slopes[:, None, None] * behind)
    expected = weights / (weights.sum(-1, keepdim=True) + sinks.exp()[:, None, None]) @ v
    torch.testing.assert_close(rung.torch.attention(q, k, v, slopes=slopes, sinks=sinks), expected)
    torch.testing.assert_close(
        torch.compile(rung.torch.attention, backend="eager")(q, k, v, slopes=slopes, sinks=sinks), expected)
    offsets = torch.tensor([0, 2, 5], dtype=torch.int32)
    packed = rung.torch.attention(q[:1], k[:1], v[:1], query_offsets=offsets, key_offsets=offsets)
    for rows in (slice(0, 2), slice(2, 5)):
        torch.testing.assert_close(packed[:, :, rows],
                                   rung.torch.attention(*(each[:1, :, rows] for each in (q, k, v))))


def test_attention_of_small_floats():
    q, k, v = attention_tensors(heads=4)
    q = q.float()
    k, v = k.to(torch.float8_e4m3fn), v.to(torch.float8_e4m3fn)
    scales = torch.linspace(0.5, 2, k.shape[0] * k.shape[1]).reshape(k.shape[:2])
    wide = (each.float() * scales[..., None, None] for each in (k, v))
    torch.testing.assert_close(rung.torch.attention(q, k, v, k_scales=scales, v_scales=scales),
                               rung.torch.attention(q, *wide))
    with pytest.raises(rung.Error, match="k and v are float8_e4m3fn, and q or sinks requires a gradient"):
        rung.torch.attention(q.requires_grad_(), k, v)
    with pytest.raises(ValueError, match="rung::attention: k and v are float8_e4m3fn"):
        torch.ops.rung.attention(q, k, v, False, None, None, 0, True)


def test_attention_refuses_gradients_that_it_has_not():
    q, k, v = attention_tensors(heads=4)
    slopes = torch.zeros(4, dtype=q.dtype, requires_grad=True)
    with pytest.raises(rung.Error, match="slopes, bias or a mask requires a gradient"):
        rung.torch.attention(q, k, v, slopes=slopes)
    with torch.no_grad():
        rung.torch.attention(q, k, v, slopes=slopes)
    mask = torch.zeros(5, 5, dtype=q.dtype, requires_grad=True)
    with pytest.raises(rung.Error, match="slopes, bias or a mask requires a gradient"):
        rung.torch.scaled_dot_product_attention(q, k, v, mask)
    table = torch.zeros(2, 1, dtype=torch.int32)
    with pytest.raises(rung.Error, match="accepted with gradients: those of q, k, v and sinks, without pages"):
        rung.torch.attention(q.requires_grad_(), k, v, page_table=table)
    with pytest.raises(ValueError, match="rung::attention: page_table is given"):
        torch.ops.rung.attention(q, k, v, False, None, None, 0, True, None, None, None, table)


@pytest.mark.parametrize("needed", [(0,), (1,), (2,), (0, 2), (1, 2)])
def test_attention_gradients_of_some_tensors(needed):
    ours, theirs, _ = CASES["attention_causal"]
    inputs = tensors("attention_causal")
    wanted = [inputs[at].requires_grad_() for at in needed]
    for mine, other in zip(gradients(ours(*inputs), wanted), gradients(theirs(*inputs), wanted), strict=True):
        torch.testing.assert_close(mine, other)
    ours(*inputs).sum().backward()
    assert [each.grad is not None for each in inputs] == [at in needed for at in range(3)]


@pytest.mark.parametrize("layout", ["transposed", "second", "offset", "expanded"])
def test_attention_takes_gradients_of_any_layout(layout):
    ours, theirs, _ = CASES["attention"]
    inputs = tensors("attention", gradient=True)
    y = ours(*inputs)
    given = laid_out(random(*y.shape, seed=5), layout)
    for mine, other in zip(torch.autograd.grad(y, inputs, given), torch.autograd.grad(theirs(*inputs), inputs, given)):
        torch.testing.assert_close(mine, other)


def test_attention_in_half_precision():
    inputs = tensors("attention_causal", torch.float16, gradient=True)
    got, expected = (function(*inputs) for function in CASES["attention_causal"][:2])
    torch.testing.assert_close(got, expected, rtol=5e-3, atol=5e-3)
    for mine, other in zip(gradients(got, inputs), gradients(expected, inputs), strict=True):
        assert mine.dtype == torch.float16
        torch.testing.assert_close(mine, other, rtol=5e-3, atol=1e-2)


def test_attention_saves_denominators_for_gradients_alone(monkeypatch):
    given, forward = [], rung.attention
    monkeypatch.setattr(rung, "attention", lambda *args, **options: given.append(options["lse"]) or
                        forward(*args, **options))
    inputs = tensors("attention", gradient=True)
    ours = CASES["attention"][0]
    with torch.no_grad():
        ours(*inputs)
    ours(*(each.detach() for each in inputs))
    assert given == [None, None]
    ours(*inputs)
    assert given[2].shape == inputs[0].shape[:-1]
    assert not torch.ops.rung.attention(*inputs, False, None, None, 0, True)[1].requires_grad


def test_attention_under_func_grad_and_compiled_with_sizes_that_change():
    ours, theirs, _ = CASES["attention_causal"]
    inputs = tensors("attention_causal")
    got, expected = (torch.func.grad(lambda *args: function(*args).square().sum(), (0, 1, 2))(*inputs)
                     for function in (ours, theirs))
    for mine, other in zip(got, expected, strict=True):
        torch.testing.assert_close(mine, other)
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager", dynamic=True)
    for keys in (4, 6):
        q, k, v = (random(2, 2, each, 3).requires_grad_() for each in (3, keys, keys))
        y, expected = compiled(q, k, v), theirs(q, k, v)
        torch.testing.assert_close(y, expected)
        for mine, other in zip(gradients(y, (q, k, v)), gradients(expected, (q, k, v)), strict=True):
            torch.testing.assert_close(mine, other)


def test_out_is_written_and_returned():
    x = random(3, 4)
    for ours, theirs in ((rung.torch.softmax, torch.softmax), (rung.torch.log_softmax, torch.log_softmax)):
        y = torch.empty(4, 3, dtype=x.dtype).t()
        assert ours(x, 1, out=y) is y
        torch.testing.assert_close(y, theirs(x, 1))
    y = torch.empty_like(x)
    assert rung.torch.gelu(x, out=y) is y
    torch.testing.assert_close(rung.torch.gemm(x, x, transpose_b=True, out=torch.empty(3, 3, dtype=x.dtype)), x @ x.t())


def test_inplace_writes_its_argument_and_keeps_gradients():
    x = random(5)
    y = x.clone()
    assert rung.torch.relu(y, inplace=True) is y and torch.equal(y, x.relu())
    for ours, theirs in ((rung.torch.relu, torch.relu), (rung.torch.silu, torch.nn.functional.silu)):
        one, two = (x.clone().requires_grad_() for _ in range(2))
        ours(one * 1, inplace=True).sum().backward()
        theirs(two).sum().backward()
        torch.testing.assert_close(one.grad, two.grad)


def test_half_gradients_of_many_rows_do_not_vanish():
    """1 / rows times a probability is below float16's smallest number; the loss scaler's factor comes later."""
    x = torch.zeros(60000, 16, dtype=torch.float16, requires_grad=True)
    target = torch.zeros(60000, dtype=torch.int64)
    (rung.torch.cross_entropy(x, target) * 32768).backward()
    torch.testing.assert_close(x.grad[0, 1].item(), 32768 / 60000 / 16, rtol=2e-3, atol=0)


def test_conversion_before_softmax():
    x = random(3, 4).to(torch.bfloat16)
    assert rung.torch.softmax(x, 1, torch.float32).dtype == torch.float32


def test_max_pool_returns_positions():
    x = random(2, 3, 6, 6)
    got = rung.torch.max_pool2d(x, 2, return_indices=True)
    expected = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
    assert torch.equal(got[0], expected[0]) and torch.equal(got[1], expected[1])


def test_threads_have_contexts_of_their_own():
    x, failures = random(64, 64), []

    def work():
        for _ in range(50):
            if not torch.allclose(rung.torch.softmax(x, -1), torch.softmax(x, -1)):
                failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    [each.start() for each in threads]
    [each.join() for each in threads]
    assert not failures


# --- refusals ------------------------------------------------------------------------------------------------------

def test_vmap_is_refused():
    with pytest.raises(NotImplementedError, match="rung::softmax has no rule for torch.func.vmap"):
        torch.func.vmap(lambda x: rung.torch.softmax(x, 0))(random(2, 3))


def test_func_grad():
    x = random(2, 3)
    got = torch.func.grad(lambda x: rung.torch.softmax(x, -1).square().sum())(x)
    torch.testing.assert_close(got, torch.func.grad(lambda x: torch.softmax(x, -1).square().sum())(x))


def test_forward_mode_is_refused():
    x = random(2, 3)
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.func.jvp(lambda x: rung.torch.softmax(x, -1), (x,), (x,))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x)
        with pytest.raises((RuntimeError, NotImplementedError)):
            rung.torch.softmax(dual, -1)


@pytest.mark.parametrize("name", sorted(set(CASES) - set(TWICE) - {"gemm", "linear_vector", "conv2d_same", "conv3d"}))
def test_second_gradients_are_refused_where_there_are_none(name):
    inputs = tensors(name, gradient=True)
    result = CASES[name][0](*inputs).square().sum()
    first = torch.autograd.grad(result, inputs, create_graph=True)
    with pytest.raises((NotImplementedError, rung.Error), match="second derivative"):
        torch.autograd.grad(result + first[0].square().sum(), inputs, allow_unused=True)


def test_attention_refuses_a_gradient_without_its_denominators():
    q, k, v = attention_tensors()
    with pytest.raises(ValueError, match="rung::attention: gradient is False, and q, k or v requires one"):
        torch.ops.rung.attention(q.requires_grad_(), k, v, False, None, None, 0, False)


def test_out_with_a_gradient_is_refused():
    x = random(3, 4).requires_grad_()
    for function in (rung.torch.softmax, rung.torch.relu):
        with pytest.raises(rung.Error, match="out is given, and an argument requires a gradient"):
            function(x, out=torch.empty(3, 4, dtype=x.dtype))
    with torch.no_grad():
        rung.torch.softmax(x, out=torch.empty(3, 4, dtype=x.dtype))


@pytest.mark.parametrize("call, message", [
    (lambda: rung.torch.linear(random(2, 3), random(4, 3, dtype=torch.float32)), "f64"),
    (lambda: rung.torch.softmax(torch.ones(2, dtype=torch.int32), 0), "i32"),
    (lambda: rung.torch.softmax(random(2, 3), 2), "axis"),
    (lambda: rung.torch.layer_norm(random(2, 3), 4), "normalized_shape"),
    (lambda: rung.torch.gelu(random(2), approximate="tanh"), "approximate"),
    (lambda: rung.torch.cross_entropy(random(2, 3), random(2, 3)), "probabilities"),
    (lambda: rung.torch.cross_entropy(random(2, 3), torch.zeros(2, dtype=torch.int64), random(3)), "weight"),
    (lambda: rung.torch.cross_entropy(random(2, 3), torch.zeros(2, dtype=torch.int64), reduction="all"), "reduction"),
    (lambda: rung.torch.conv2d(random(1, 1, 2, 2), random(1, 1, 3, 3)), "conv"),
    (lambda: rung.torch.conv2d(random(1, 1, 2), random(1, 1, 3), padding="most"), "padding"),
    (lambda: rung.torch.avg_pool2d(random(1, 1, 2, 2), 2, divisor_override=3), "divisor_override"),
    (lambda: rung.torch.gemm(random(2), random(2, 2)), "a has 1 ax"),
    (lambda: rung.torch.scaled_dot_product_attention(*attention_tensors()), "heads"),
    (lambda: rung.torch.scaled_dot_product_attention(random(1, 1, 2, 2), *2 * [random(1, 1, 3, 2)], is_causal=True),
     "is_causal"),
    (lambda: rung.torch.scaled_dot_product_attention(*3 * [random(1, 1, 2, 2)], torch.zeros(2, 2), is_causal=True),
     "attn_mask is given, and is_causal"),
    (lambda: rung.torch.scaled_dot_product_attention(*3 * [random(1, 1, 2, 2)], torch.zeros(3, 2)),
     "attn_mask has shape"),
    (lambda: rung.torch.scaled_dot_product_attention(*3 * [random(1, 1, 2, 2)], dropout_p=0.5), "dropout_p is 0.5")])
def test_refusals_name_what_is_wrong(call, message):
    with pytest.raises(rung.Error, match=message):
        call()


@pytest.mark.parametrize("module", ["", ".functional", ".nn"])
def test_examples(module):
    found = __import__(f"rung.torch{module}", fromlist=["_"])
    failed, _ = doctest.testmod(found)
    assert failed == 0
