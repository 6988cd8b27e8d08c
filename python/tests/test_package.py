# SPDX-License-Identifier: Apache-2.0
"""The package itself: import, contexts, errors, threads, fork, docstrings."""
import copy
import doctest
import importlib
import inspect
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import rung
from rung._ops import NAMES


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_import_is_fast_and_brings_nothing():
    out = run("import sys, time; start = time.perf_counter(); import rung; took = time.perf_counter() - start\n"
              "print(sorted({'numpy', 'torch', 'cupy', 'subprocess', 'typing', 'asyncio'} & set(sys.modules)), "
              "len([name for name in sys.modules if name.startswith('rung._ops')]))")
    assert out == "[] 0"
    code = "import time; t = time.process_time(); import rung; print(time.process_time() - t)"
    assert min(float(run(code)) for _ in range(3)) < 0.15


def test_numpy_is_not_imported_for_other_arrays():
    assert run("import sys, array, rung; x = array.array('f', [1]); rung.relu(x, out=x); print('numpy' in sys.modules)"
               ) == "False"


@pytest.mark.parametrize("name", sorted(NAMES))
def test_functions_are_functions_with_signatures_and_examples(name):
    function = getattr(rung, name)
    assert name in dir(rung) and inspect.isfunction(function)
    parameters = inspect.signature(function).parameters
    assert {"rung", "context"} <= set(parameters)
    for option in ("rung", "context", "out"):
        if option in parameters:
            assert parameters[option].kind is inspect.Parameter.KEYWORD_ONLY and parameters[option].default is None
    assert ">>> " in function.__doc__ and f"rung.{name}(" in function.__doc__, "no example"


@pytest.mark.parametrize("module", ["rung", *sorted({f"rung._ops.{name}" for name in NAMES.values()})])
def test_examples_give_what_they_say(module):
    found = importlib.import_module(module)
    failed, tried = doctest.testmod(found, extraglobs={"rung": rung})
    assert failed == 0 and tried > 0


@pytest.mark.parametrize("known", [rung.Context, rung.Error])
def test_examples_of_classes(known):
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder().find(known, known.__name__, module=False, globs={"rung": rung}):
        assert runner.run(test).failed == 0
    assert runner.tries > 0


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'sofmax'"):
        rung.sofmax  # noqa: B018
    assert not hasattr(rung, "_hidden")


def test_facts():
    assert rung.version.split(".")[0].isdigit() and rung.__version__ == rung.version
    assert rung.operators()["softmax"].startswith("y = exp")
    rungs = rung.rungs("softmax", "cpu")
    assert rungs and all(one.backend == "cpu" and one.file.startswith("rung/ops/softmax/") for one in rungs)
    steps = [one.step for one in rungs if one.step]
    assert steps == sorted(steps)
    with pytest.raises(rung.Error, match="softmax"):
        rung.rungs("sofmax")
    assert rung.available("cpu") == (True, "")


def test_a_rung_by_name():
    x = np.random.default_rng(1).standard_normal((5, 70), dtype=np.float32)
    for one in rung.rungs("softmax", "cpu"):
        if not one.peer and one.step > 0:  # other rungs support some shapes only
            np.testing.assert_allclose(rung.softmax(x, rung=one.name), rung.softmax(x), rtol=1e-4)
    with pytest.raises(rung.Error, match="fastest_of_all"):
        rung.softmax(x, rung="fastest_of_all")
    with pytest.raises(rung.Error, match="rung is ''"):
        rung.softmax(x, rung="")
    with pytest.raises(TypeError, match="rung is a int"):
        rung.softmax(x, rung=3)


def test_contexts():
    context = rung.Context("cpu", threads=3, choice="fastest")
    assert (context.backend, context.device, context.threads, context.choice) == ("cpu", 0, 3, "fastest")
    assert repr(context) == "rung.Context('cpu', threads=3, choice='fastest')"
    assert context.tuning == "off"
    assert repr(rung.Context("cpu", threads=1, tuning="remembered")) == (
        "rung.Context('cpu', threads=1, tuning='remembered')")
    assert context.device_name
    context.synchronize()
    x = np.ones(4, dtype=np.float32)
    assert rung.softmax(x, context=context).tolist() == [0.25] * 4
    for wrong, error in [(("gpu",), rung.Error), ((3,), TypeError)]:
        with pytest.raises(error):
            rung.Context(*wrong)
    for options in ({"threads": -1}, {"device": 1}, {"choice": "best"}, {"tuning": "on"}, {"stream": 8}):
        with pytest.raises(rung.Error):
            rung.Context(**options)
    with pytest.raises(TypeError, match="context is a str; accepted: a rung.Context"):
        rung.softmax(x, context="cpu")
    with pytest.raises(TypeError):
        pickle.dumps(context)
    assert list(inspect.signature(rung.Context).parameters) == [
        "backend", "device", "threads", "choice", "stream", "tuning"]


def test_the_simulated_gpu_takes_arrays_of_the_host():
    usable, why = rung.available("simt")
    if not usable:
        pytest.skip(why)
    context = rung.Context("simt")
    x = np.array([[0.0, 1.0, 2.0]], dtype=np.float32)
    np.testing.assert_allclose(rung.softmax(x, context=context), rung.softmax(x), rtol=1e-5)


def test_errors_can_be_pickled_and_are_value_errors():
    with pytest.raises(ValueError) as caught:
        rung.softmax(np.ones(3, dtype=np.float32), axis=7)
    error = caught.value
    assert type(error) is rung.Error and error.code == "invalid_argument"
    assert str(error).startswith("softmax: axis")
    for same in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(same) is rung.Error and str(same) == str(error) and same.code == error.code
    memory = rung.OutOfMemoryError("none left", "out_of_memory")
    assert isinstance(memory, MemoryError) and isinstance(memory, rung.Error)
    assert pickle.loads(pickle.dumps(memory)).code == "out_of_memory"


@pytest.mark.parametrize("count", [1, 2, 7])
def test_threads_have_contexts_of_their_own(count):
    x = np.random.default_rng(count).standard_normal((64, 300), dtype=np.float32)
    expected = rung.softmax(x)
    results, errors = [None] * count, []

    def work(i):
        try:
            for _ in range(20):
                results[i] = rung.softmax(x)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for result in results:  # the same bits in every thread
        assert (result == expected).all()


def test_a_context_in_two_threads_at_once_is_an_error():
    context = rung.Context("cpu", threads=1)
    x = np.zeros((1024, 1024), dtype=np.float32)
    codes, stop = [], time.monotonic() + 20

    def work():
        out = np.empty_like(x)
        while not codes and time.monotonic() < stop:
            try:
                rung.softmax(x, out=out, context=context)
            except rung.Error as error:
                codes.append(error.code)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes and set(codes) == {"invalid_argument"}


def test_other_threads_run_during_a_call():
    a = np.ones((300, 300))
    inside, counted, done = threading.Event(), [0], threading.Event()

    def count():
        inside.wait()
        while not done.is_set():
            counted[0] += 1
            time.sleep(0)  # releases the lock; no switch is forced

    counter = threading.Thread(target=count)
    counter.start()
    former = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # no forced switches: the counter runs only if the call releases the lock
    try:
        inside.set()
        time.sleep(0.01)
        before = counted[0]
        rung.gemm(a, a, rung="naive_ijk")
        during = counted[0] - before
    finally:
        sys.setswitchinterval(former)
        done.set()
        counter.join()
    assert during > 0


def test_a_forked_child_makes_calls():
    x = np.random.default_rng(3).standard_normal((256, 2000), dtype=np.float32)
    expected = rung.softmax(x)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if (rung.softmax(x) == expected).all() else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
