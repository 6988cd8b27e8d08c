#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_pytorch.py SOURCE LIBRUNG [PROGRAM DATA [THREADS|cuda]]: compares training operators with PyTorch.

Gradients and steps: loss, activation_backward and optimizer, called through librung.so, against PyTorch's autograd and
optimizers on the same numbers, and attention against its scaled_dot_product_attention; prints the largest difference of
each, and ends with 1 if one exceeds its bound. Speed, with PROGRAM (example_digits) and DATA (written by
tools/digits_data.py): an epoch of the MLP and of the LeNet on THREADS threads (2) of the CPU, or on a GPU, by the
program and by PyTorch (eager), with the same model, batch and type, and data in the memory of the device. Also compares
the losses of the first steps on both backends.
Not a part of continuous integration: it needs PyTorch and NumPy.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "tests/c_api"))
from against_numpy import Api  # noqa: E402

BATCH = 32
EPOCHS = 5


def compare(what, got, wanted, bound, failures):
    """Prints the largest difference, in units of the largest element; above `bound` adds `what` to failures."""
    wanted = wanted.detach().numpy()
    error = float(np.max(np.abs(got - wanted)) / max(float(np.max(np.abs(wanted))), 1e-30))
    print(f"{what:44} {error:9.2e}{'' if error <= bound else '   TOO FAR'}")
    if not error <= bound:
        failures.append(what)


def losses(api, draw, failures):
    x = draw.standard_normal((200, 37)).astype(np.float32) * 3
    labels = draw.integers(0, 37, 200)
    labels[::7] = -100
    target = draw.standard_normal(x.shape).astype(np.float32)
    for name, given, kind, torchs in (
            ("cross entropy", {}, "CROSS_ENTROPY", lambda t: torch.nn.functional.cross_entropy(
                t, torch.from_numpy(labels))),
            ("cross entropy, smoothed", {"smoothing": 0.1}, "CROSS_ENTROPY",
             lambda t: torch.nn.functional.cross_entropy(t, torch.from_numpy(labels), label_smoothing=0.1)),
            ("squared error", None, "SQUARED", lambda t: torch.nn.functional.mse_loss(t, torch.from_numpy(target)))):
        tensor = torch.from_numpy(x.copy()).requires_grad_()
        loss = torchs(tensor)
        loss.backward()
        result, dx = np.empty((), np.float32), np.empty_like(x)
        options = {"dx": dx, "kind": f"RUNG_LOSS_{kind}"}
        if given is not None:
            options.update(given, ignored_label=-100)
        api.call("loss", x, target if given is None else labels, result, options=api.options("loss", **options))
        compare(f"loss: {name}", result, loss, 1e-6, failures)
        compare(f"loss: gradient of {name}", dx, tensor.grad, 2e-6, failures)


def activations(api, draw, failures):
    x = draw.standard_normal((50, 41)).astype(np.float32) * 3
    dy = draw.standard_normal(x.shape).astype(np.float32)
    for name, function in (("SIGMOID", torch.sigmoid), ("TANH", torch.tanh), ("RELU", torch.relu),
                           ("GELU", torch.nn.functional.gelu), ("SILU", torch.nn.functional.silu)):
        tensor = torch.from_numpy(x.copy()).requires_grad_()
        y = function(tensor)
        y.backward(torch.from_numpy(dy))
        saved = y.detach().numpy() if name in ("SIGMOID", "TANH") else x
        dx = np.empty_like(x)
        api.call("activation_backward", saved, dy, dx, options=api.options(
            "activation_backward", function=f"RUNG_ACTIVATION_FUNCTION_{name}"))
        compare(f"activation_backward: {name.lower()}", dx, tensor.grad, 2e-6, failures)


def optimizers(api, draw, failures):
    start = draw.standard_normal(1000).astype(np.float32)
    for name, make, given in (
            ("sgd", lambda p: torch.optim.SGD(p, 0.1), {"learning_rate": 0.1}),
            ("sgd, momentum, decay", lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=0.01),
             {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
            ("sgd, nesterov", lambda p: torch.optim.SGD(p, 0.1, 0.9, nesterov=True),
             {"learning_rate": 0.1, "momentum": 0.9, "nesterov": 1}),
            ("adam, decay", lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.01),
             {"kind": "RUNG_OPTIMIZER_ADAM", "learning_rate": 0.01, "weight_decay": 0.01}),
            ("adamw, clipped", lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1),
             {"kind": "RUNG_OPTIMIZER_ADAM", "learning_rate": 0.01, "weight_decay": 0.1, "decoupled": 1,
              "max_norm": 5.0})):
        tensor = torch.nn.Parameter(torch.from_numpy(start.copy()))
        optimizer, p = make([tensor]), start.copy()
        m, v = np.zeros_like(p), np.zeros_like(p)
        adam = "kind" in given
        moments = {"first_moment": m} if adam or "momentum" in given else {}
        if adam:
            moments["second_moment"] = v
        for step in range(1, 51):
            g = np.sin(3 * p).astype(np.float32)  # each side from its own parameters
            tensor.grad = torch.sin(3 * tensor.detach())
            if "max_norm" in given:
                torch.nn.utils.clip_grad_norm_([tensor], given["max_norm"])
            optimizer.step()
            api.call("optimizer", p, g, options=api.options("optimizer", step=step, **moments, **given))
        compare(f"optimizer: 50 steps of {name}", p, tensor, 1e-4, failures)


def attention(api, draw, failures):
    for causal, group in ((False, 1), (True, 4)):
        q = draw.standard_normal((2, 8, 70, 64)).astype(np.float32)
        k, v = (draw.standard_normal((2, 8 // group, 70, 64)).astype(np.float32) for _ in range(2))
        o = np.empty_like(q)
        api.call("attention", q, k, v, o, options=api.options("attention", causal=int(causal)))
        theirs = torch.nn.functional.scaled_dot_product_attention(
            *(torch.from_numpy(x) for x in (q, np.repeat(k, group, 1), np.repeat(v, group, 1))), is_causal=causal)
        compare(f"attention: {'causal' if causal else 'full'}, {8 // group} heads of keys", o, theirs, 2e-6, failures)


def model_of(name):
    linear, relu = torch.nn.Linear, torch.nn.ReLU
    if name == "mlp":
        return torch.nn.Sequential(torch.nn.Flatten(), linear(784, 256), relu(), linear(256, 128), relu(),
                                   linear(128, 10))
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 6, 5, padding=2), relu(), torch.nn.MaxPool2d(2), torch.nn.Conv2d(6, 16, 5), relu(),
        torch.nn.MaxPool2d(2), torch.nn.Flatten(), linear(400, 120), relu(), linear(120, 84), relu(), linear(84, 10))


def pytorch_epochs(name, images, labels):
    """Returns the seconds of each epoch."""
    model = model_of(name).to(images.device)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    seconds = []
    for _ in range(EPOCHS):
        order = torch.randperm(len(labels))
        x, y = images[order], labels[order]
        began = time.perf_counter()
        for first in range(0, len(labels), BATCH):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x[first:first + BATCH]), y[first:first + BATCH])
            loss.backward()
            optimizer.step()
        loss.item()  # waits for the device
        seconds.append(time.perf_counter() - began)
    return seconds


def same_curve(name, program, data, failures):
    """Compares the first 100 steps on the CPU and on the GPU."""
    curves = []
    for backend in "cpu", "cuda":
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([program, "--data", data, "--model", name, "--steps", "100", "--batch", str(BATCH),
                            "--backend", backend, "--curve", f"{folder}/curve.npy"], capture_output=True, check=True)
            curves.append(np.load(f"{folder}/curve.npy")[:100])
    error = float(np.max(np.abs(curves[0] - curves[1]) / np.abs(curves[0])))
    print(f"{name}: 100 losses on the CPU and on the GPU differ by up to {error:.1e}")
    if not error <= 1e-3:
        failures.append(f"losses of {name}")


def rung_epochs(name, program, data, device):
    text = subprocess.run([program, "--data", data, "--model", name, "--epochs", str(EPOCHS), "--batch", str(BATCH),
                           *(["--backend", device] if device == "cuda" else ["--threads", device])],
                          capture_output=True, text=True, check=True).stdout
    return [float(found) for found in re.findall(r"([0-9.]+) s$", text, re.M)][:EPOCHS]


def main():
    device = sys.argv[5] if len(sys.argv) > 5 else "2"
    if device != "cuda":
        torch.set_num_threads(int(device))
    api, draw, failures = Api(sys.argv[2]), np.random.default_rng(1), []
    print(f"PyTorch {torch.__version__}; largest difference, of the largest element")
    losses(api, draw, failures)
    activations(api, draw, failures)
    optimizers(api, draw, failures)
    attention(api, draw, failures)
    if len(sys.argv) > 4:
        program, data = sys.argv[3], sys.argv[4]
        images = torch.from_numpy(np.load(f"{data}/mnist_images.npy")).float().div(255)[:4000, None]
        labels = torch.from_numpy(np.load(f"{data}/mnist_labels.npy"))[:4000]
        if device == "cuda":
            images, labels = images.cuda(), labels.cuda()
            for name in "softmax", "mlp", "lenet":
                same_curve(name, program, data, failures)
        for name in "mlp", "lenet":
            ours, theirs = min(rung_epochs(name, program, data, device)), min(pytorch_epochs(name, images, labels))
            print(f"{name}: an epoch of 4000 images, best of {EPOCHS}: rung {ours:.2f} s, PyTorch {theirs:.2f} s")
    if failures:
        sys.exit(f"too far: {', '.join(failures)}")


if __name__ == "__main__":
    main()
