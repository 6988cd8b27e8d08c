# SPDX-License-Identifier: Apache-2.0
"""rung.torch.nn in place of torch.nn: the same parameters, results and training."""
import copy
import inspect

import pytest

torch = pytest.importorskip("torch")
import rung.torch.nn  # noqa: E402
from torch import nn  # noqa: E402

MODULES = {
    "LayerNorm": (((4, 5),), (3, 4, 5)), "RMSNorm": ((5,), (3, 4, 5)), "Softmax": ((1,), (3, 4)),
    "LogSoftmax": ((-1,), (3, 4)), "Linear": ((5, 2), (3, 4, 5)), "Conv1d": ((4, 6, 3, 2, 1), (2, 4, 9)),
    "Conv2d": ((4, 6, 3, 1, "same", 1, 2), (2, 4, 7, 6)), "Conv3d": ((2, 3, 2), (1, 2, 4, 4, 4)),
    "MaxPool2d": ((3, 2, 1), (2, 3, 8, 8)), "AvgPool2d": ((2,), (2, 3, 8, 8)), "ReLU": ((), (3, 4)),
    "GELU": ((), (3, 4)), "SiLU": ((), (3, 4))}


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_drop_ins(name):
    arguments, shape = MODULES[name]
    own, other = getattr(rung.torch.nn, name), getattr(nn, name)
    assert inspect.signature(own) == inspect.signature(other) and issubclass(own, other)
    theirs, ours = other(*arguments), own(*arguments)
    assert list(theirs.state_dict()) == list(ours.state_dict()) and repr(ours) == repr(theirs)
    ours.load_state_dict(theirs.state_dict())
    other(*arguments).load_state_dict(ours.state_dict())
    x = torch.randn(shape, requires_grad=True)
    for module in (ours, theirs):
        module(x).square().sum().backward()
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-5, atol=1e-5)
    for mine, yours in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, yours.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["reflect", "circular"])
def test_padding_of_other_modes(mode):
    theirs = nn.Conv2d(2, 3, 3, padding=1, padding_mode=mode)
    ours = rung.torch.nn.Conv2d(2, 3, 3, padding=1, padding_mode=mode)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 2, 5, 5)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-5, atol=1e-5)


def test_softmax_without_a_dimension_chooses_pytorchs():
    for rank in range(1, 5):
        x = torch.randn((2, 3, 4, 5)[:rank])
        with pytest.warns(UserWarning):
            expected = nn.Softmax()(x)
        torch.testing.assert_close(rung.torch.nn.Softmax()(x), expected)


def test_inplace_activations():
    for module in (rung.torch.nn.ReLU(inplace=True), rung.torch.nn.SiLU(inplace=True)):
        x = torch.randn(4)
        assert module(x) is x


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3), nn.GELU(),
                         nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 16), nn.LayerNorm(16), nn.SiLU(), nn.Linear(16, 4))


def test_replace_changes_classes_and_keeps_parameters():
    model = network()
    parameters = list(model.parameters())
    seen = []
    model[0].register_forward_hook(lambda *_: seen.append(1))
    x = torch.randn(2, 1, 8, 8)
    expected = model(x)
    assert rung.torch.nn.replace(model) is model
    assert all(mine is yours for mine, yours in zip(model.parameters(), parameters, strict=True))
    assert {type(each).__module__ for each in model} == {"rung.torch.nn", "torch.nn.modules.flatten"}
    torch.testing.assert_close(model(x), expected, rtol=1e-5, atol=1e-5)
    assert seen == [1, 1]
    torch.testing.assert_close(copy.deepcopy(model)(x), expected, rtol=1e-5, atol=1e-5)


def test_replace_leaves_what_rung_refuses_and_subclasses():
    class Own(nn.Linear):
        pass

    model = nn.ModuleList([nn.GELU("tanh"), nn.CrossEntropyLoss(torch.ones(2)), nn.AvgPool2d(2, divisor_override=3),
                           Own(2, 2), nn.CrossEntropyLoss(label_smoothing=0.1)])
    classes = [type(each) for each in rung.torch.nn.replace(model)]
    assert classes[:4] == [nn.GELU, nn.CrossEntropyLoss, nn.AvgPool2d, Own]
    assert classes[4] is rung.torch.nn.CrossEntropyLoss


def train(model, criterion, steps):
    torch.manual_seed(1)
    x = torch.randn(64, 1, 8, 8)
    target = (x.mean((1, 2, 3)) * 20).long().clamp(-1, 2) + 1
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = criterion(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training_falls_and_equals_pytorchs():
    expected = train(network(), nn.CrossEntropyLoss(label_smoothing=0.1), 25)
    got = train(rung.torch.nn.replace(network()), rung.torch.nn.CrossEntropyLoss(label_smoothing=0.1), 25)
    assert got[-1] < 0.8 * got[0]
    assert max(abs(mine - yours) for mine, yours in zip(got, expected)) < 1e-4


def test_training_compiled():
    model = torch.compile(rung.torch.nn.replace(network()), fullgraph=True, backend="aot_eager")
    assert max(abs(mine - yours) for mine, yours in zip(train(model, nn.CrossEntropyLoss(), 5),
                                                        train(network(), nn.CrossEntropyLoss(), 5))) < 1e-4
