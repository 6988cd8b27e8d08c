# SPDX-License-Identifier: Apache-2.0
"""A build of some operators: the package imports, and the other operators' functions raise an error that names the
operator. Needs the source tree, where the package is put together."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import rung
from rung._ops import NAMES

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    gather = SOURCE / "python" / "gather.py"
    if not gather.exists() or not {"softmax", "reduce"} <= set(NAMES.values()):
        pytest.skip("needs the source tree and a build of softmax and reduce")
    folder = tmp_path_factory.mktemp("partial")
    functions = {path.stem: str(path) for path in SOURCE.glob("rung/ops/*/python/*.py")}
    built = [functions.pop("softmax"), functions.pop("reduce")]
    subprocess.run([sys.executable, gather, "--copy", SOURCE / "python" / "rung", folder / "rung", *built, "--absent",
                    *functions.values()], check=True)
    shutil.copy(pathlib.Path(rung.__file__).parent / "_rung.abi3.so", folder / "rung")

    def call(code):
        path = os.pathsep.join([str(folder), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, text=True,
                              capture_output=True, check=False, cwd=folder)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()
    return call


def test_functions_that_are_not_built_say_how_to_get_them(run):
    out = run("import rung, array\nx = array.array('f', [1, 2])\nrung.softmax(x, out=x)\nprint('gemm' in dir(rung))\n"
              "try: rung.gemm(1, b=2)\nexcept rung.Error as error: print(error.code, error)")
    assert out.splitlines() == ["False", "not_available gemm: this build of rung has no operator gemm, it has reduce, "
                                "softmax; build it with -DRUNG_OPERATORS=\"reduce;softmax;gemm\", or without this "
                                "option for all operators"]
    assert "adam_step: this build of rung has no operator optimizer," in run(
        "from rung import adam_step, Error\ntry: adam_step()\nexcept Error as error: print(error)")
    assert run("import rung\ntry: rung.sofmax\nexcept AttributeError as error: print(error)") == \
        "module 'rung' has no attribute 'sofmax'"


def test_torch_imports_without_all_operators(run):
    pytest.importorskip("torch")
    assert run("import torch, rung, rung.torch\nprint(rung.torch.softmax(torch.zeros(2), 0))\n"
               "try: rung.torch.relu(torch.zeros(2))\nexcept rung.Error as error: print(error.code)"
               ).splitlines() == ["tensor([0.5000, 0.5000])", "not_available"]
