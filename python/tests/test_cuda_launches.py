# SPDX-License-Identifier: Apache-2.0
"""Launches of kernel strings: which are checked, arch, dynamic shared memory, state of memory under several orders, and
the key of the cache. Needs NumPy, g++ and the program rung."""
# pylint: disable=missing-function-docstring,redefined-outer-name
import os
import subprocess
import sys

import pytest

np = pytest.importorskip("numpy")

from rung import cuda  # noqa: E402  pylint: disable=wrong-import-position
from rung.pycuda import driver  # noqa: E402  pylint: disable=wrong-import-position
from rung.pycuda.compiler import SourceModule  # noqa: E402  pylint: disable=wrong-import-position

SOURCE = r"""
extern "C" {
__global__ void add(float* y, const float* x) { y[threadIdx.x] = x[threadIdx.x] + 1; }
__global__ void past_end(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 1; }
__global__ void arch(int* out) { out[0] = __CUDA_ARCH__; }
__global__ void reversed(float* x, int last) {
  extern __shared__ float tile[];
  tile[last - threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[last - blockDim.x + 1 + threadIdx.x];
}
}
"""
KIB64 = 64 << 10


@pytest.fixture(scope="module")
def module(tmp_path_factory, program):
    del program
    if "RUNG_TEST_CACHE" not in os.environ:
        os.environ["RUNG_TEST_CACHE"] = str(tmp_path_factory.mktemp("kernels"))
    os.environ["XDG_CACHE_HOME"] = os.environ["RUNG_TEST_CACHE"]
    return cuda.RawModule(code=SOURCE)


def test_every_launch_is_checked_by_default(module):
    x, y = np.zeros(32, np.float32), np.zeros(32, np.float32)
    with cuda.checked(counters=False) as report:
        for _ in range(20):
            module.get_function("add")((1,), (32,), (y, x))
    assert report.launches["add"] == {"launches": 20, "checked": 20}
    assert "ran unchecked" not in str(report)


def test_repeated_launches_run_unchecked_where_asked(module):
    x, y = cuda.to_device(np.zeros(32, np.float32)), cuda.DeviceArray(32)
    add = module.get_function("add")
    with cuda.checked(checks=2, counters=False) as report:
        for _ in range(40):
            add((1,), (32,), (y, x))
    of_add = report.launches["add"]
    assert of_add["launches"] == 40
    assert 2 <= of_add["checked"] < 10
    assert "add: " + str(of_add["checked"]) + " of 40 launches were checked" in str(report)
    np.testing.assert_array_equal(y.get(), np.ones(32))
    with cuda.checked(counters=False) as report:
        add((1,), (32,), (x, y))  # elements written by unchecked launches count as initialized
        add((1,), (32,), (x, y))
    assert report.launches["add"] == {"launches": 2, "checked": 2}


def test_another_launch_of_a_repeated_kernel_is_checked(module):
    past_end, x = module.get_function("past_end"), cuda.to_device(np.zeros(16, np.float32))
    with cuda.checked(checks="1", counters=False) as report:
        for _ in range(10):
            past_end((1,), (32,), (x, 16))
        with pytest.raises(cuda.BoundsError):
            past_end((1,), (32,), (x, 17))
    assert report.launches["past_end"]["checked"] < 11


@pytest.mark.parametrize("checks", ["once", 0, "0", True, 1.5, "", None])
def test_refuses_other_checks(checks):
    with pytest.raises(ValueError, match="checks: given .*'always', 'repeated' and a number of launches from 1 on"):
        cuda.checked(checks=checks)


def test_refuses_repeated_checks_under_all_orders():
    with pytest.raises(ValueError, match="checks: given 'repeated' with orders='all'.*'always'"):
        cuda.checked(checks="repeated", orders="all")


@pytest.mark.parametrize("options, expected", [
    ((), 900), (("-arch=sm_70",), 700), (("--gpu-architecture=compute_75",), 750), (("-arch", "sm_90a"), 900),
    (("-gencode", "arch=compute_80,code=sm_80", "-gencode=arch=compute_120,code=sm_120"), 800),
    (("-arch=native",), 900)])
def test_options_set_the_architecture(module, options, expected):
    del module
    out = np.zeros(1, np.int32)
    cuda.RawKernel('extern "C" __global__ void arch(int* out) { out[0] = __CUDA_ARCH__; }', "arch", options)(
        (1,), (1,), (out,))
    assert out[0] == expected


def test_pycuda_arch_sets_the_architecture(module):
    del module
    out = np.zeros(1, np.int32)
    SourceModule("__global__ void arch(int* out) { out[0] = __CUDA_ARCH__; }", arch="sm_80").get_function("arch")(
        driver.Out(out), block=(1, 1, 1))
    assert out[0] == 800


@pytest.mark.parametrize("make", [
    lambda arch: cuda.RawModule(code=SOURCE, options=(f"-arch={arch}",)),
    lambda arch: SourceModule("__global__ void f() {}", arch=arch),
    lambda arch: SourceModule("__global__ void f() {}", code=arch)])
@pytest.mark.parametrize("arch", ["sm_100", "compute_120a", "sm_35", "gpu", "70"])
def test_refuses_architectures_that_the_device_cannot_run(make, arch):
    with pytest.raises(ValueError, match=f"given '{arch}', accepted are sm_60 to sm_90.*capability 9.0"):
        make(arch)


def test_each_element_keeps_its_state_under_all_orders(module):
    x, y = cuda.DeviceArray(16), cuda.to_device(np.zeros(8, np.float32))
    x.gpudata.write(np.ones(8, np.float32))  # the first half
    add = module.get_function("add")
    with cuda.checked(action="collect", orders="all", counters=False) as report:
        add((1,), (8,), (y, x))
    assert report.findings == []
    with cuda.checked(action="collect", orders="all", counters=False) as report:
        add((1,), (8,), (y, x.gpudata + 32))
    assert [(one.kind, one.orders) for one in report.findings] == [("uninitialized", [])]
    with pytest.raises(cuda.UninitializedError):
        add((1,), (8,), (y, x.gpudata + 32))


def test_more_than_48_kib_of_shared_memory_are_refused_until_raised(module):
    kernel, x = module.get_function("reversed"), np.arange(32, dtype=np.float32)
    last = KIB64 // 4 - 1
    assert kernel.max_dynamic_shared_size_bytes == 48 << 10
    with pytest.raises(cuda.CudaError, match="65536 bytes of dynamic shared.*max_dynamic_shared_size_bytes = 65536"):
        kernel((1,), (32,), (x, last), shared_mem=KIB64)
    kernel.max_dynamic_shared_size_bytes = KIB64
    assert module.get_function("reversed").max_dynamic_shared_size_bytes == KIB64  # of the kernel, not the handle
    kernel((1,), (32,), (x, last), shared_mem=KIB64)
    np.testing.assert_array_equal(x, np.arange(32)[::-1])
    with pytest.raises(cuda.CudaError, match="max_dynamic_shared_size_bytes: given 300000, accepted are 0 to 232448"):
        kernel.max_dynamic_shared_size_bytes = 300000


def test_shared_memory_of_a_kernel_of_the_same_name_is_its_own(module):
    module.get_function("reversed").max_dynamic_shared_size_bytes = KIB64
    source = SOURCE.replace('extern "C" {', "").rstrip()[:-1] + "// another module"
    other = SourceModule(source).get_function("reversed")
    x = np.arange(32, dtype=np.float32)
    with pytest.raises(cuda.CudaError, match="MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536"):
        other(driver.InOut(x), np.int32(KIB64 // 4 - 1), block=(32, 1, 1), shared=KIB64)
    other.set_attribute(driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, KIB64)
    assert other.get_attribute(driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES) == KIB64
    other(driver.InOut(x), np.int32(KIB64 // 4 - 1), block=(32, 1, 1), shared=KIB64)
    np.testing.assert_array_equal(x, np.arange(32)[::-1])


def test_a_raised_limit_outlives_the_worker(module):
    spins = cuda.RawKernel('extern "C" __global__ void spins(float* x) { for (float v = 1; v > 0;) x[0] = v = 2; }',
                           "spins")
    kernel, x = module.get_function("reversed"), np.arange(32, dtype=np.float32)
    kernel.max_dynamic_shared_size_bytes = KIB64
    with cuda.checked(timeout=0.5, counters=False), pytest.raises(cuda.TimeoutError):
        spins((1,), (1,), (np.zeros(1, np.float32),))
    kernel((1,), (32,), (x, KIB64 // 4 - 1), shared_mem=KIB64)
    np.testing.assert_array_equal(x, np.arange(32)[::-1])


def test_the_cache_tells_libraries_of_one_version_apart(tmp_path):
    """A rebuilt runtime of kernels keeps its version; kernels compiled for the old runtime must not be reused."""
    for folder in ("bin", "lib"):
        (tmp_path / folder).mkdir()
    program = tmp_path / "bin" / "rung"
    program.write_text("#!/bin/sh\necho rung 0.1.0\n", encoding="ascii")
    program.chmod(0o755)
    library = tmp_path / "lib" / "librung_emulate.so.0"

    def key(content):
        library.write_bytes(content)
        os.utime(library, ns=(1, 1))
        code = "from rung.cuda import _compile; print(_compile.key_of('source'))"
        return subprocess.run([sys.executable, "-c", code], env={**os.environ, "RUNG_PROGRAM": str(program)}, text=True,
                              capture_output=True, check=True).stdout
    first = key(b"one")
    assert key(b"two") != first
    assert key(b"one") == first
