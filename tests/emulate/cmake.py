# SPDX-License-Identifier: Apache-2.0
"""A CMake project without any knowledge of rung is built for the simulated GPU by the toolchain file of `rung emulate`:
static and shared libraries of kernels, C++ sources that call the runtime, a generator that runs during the build,
tests.
usage: cmake.py RUNG CMAKE"""
import os
import pathlib
import subprocess
import sys
import tempfile

FILES = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.18)
project(app LANGUAGES CXX CUDA)
set(CMAKE_CUDA_STANDARD 17)
find_package(CUDAToolkit REQUIRED)
add_library(kernels STATIC lib/kernels.cu)
target_include_directories(kernels PUBLIC include)
target_compile_options(kernels PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--use_fast_math -lineinfo>)
set_target_properties(kernels PROPERTIES CUDA_SEPARABLE_COMPILATION ON CUDA_ARCHITECTURES "80;90")
add_library(parts SHARED lib/parts.cu)
add_executable(app main.cu host.cpp)
target_compile_definitions(app PRIVATE FACTOR=2)
target_link_libraries(app PRIVATE kernels parts CUDA::cudart)
add_executable(generate generate.cu)
add_custom_command(OUTPUT made.txt COMMAND generate made.txt --size 3 DEPENDS generate)
add_custom_target(made ALL DEPENDS made.txt)
enable_testing()
add_test(NAME app COMMAND app --size 96)
""",
    "include/kernels.cuh": "#pragma once\nconstexpr int more = 0;\nvoid scale_all(float* x, int n, float f);\n",
    "lib/kernels.cu": """#include "kernels.cuh"
__global__ void scale(float* x, int n, float f) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) x[i] *= f;
}
void scale_all(float* x, int n, float f) { scale<<<(n + 31) / 32, 32>>>(x, n, f); }
""",
    "lib/parts.cu": """__global__ void ones(float* x) { x[blockIdx.x] = 1; }
void all_ones(float* x, int n) { ones<<<n, 1>>>(x); }
""",
    "host.cpp": """#include <cuda_runtime.h>
bool equals(const float* x, int i, float want) {
  float got = 0;
  return cudaMemcpy(&got, x + i, sizeof got, cudaMemcpyDeviceToHost) == cudaSuccess && got == want;
}
""",
    "main.cu": """#include <cstdlib>
#include "kernels.cuh"
void all_ones(float* x, int n);
bool equals(const float* x, int i, float want);
int main(int argc, char** argv) {
  const int n = argc == 3 ? std::atoi(argv[2]) : 100;
  float* x;
  cudaMalloc(&x, n * sizeof(float));
  all_ones(x, n);
  scale_all(x, n + more, FACTOR);
  return equals(x, n - 1, 2) ? 0 : 1;
}
""",
    "generate.cu": """#include <cstdio>
__global__ void one(int* p) { *p = 1; }
int main(int argc, char** argv) {
  int *p, h;
  cudaMalloc(&p, sizeof h);
  one<<<1, 1>>>(p);
  cudaMemcpy(&h, p, sizeof h, cudaMemcpyDeviceToHost);
  std::FILE* file = std::fopen(argv[1], "w");
  std::fprintf(file, "%d of %d", h, argc);
  return std::fclose(file);
}
""",
}


class Project:
    """The project in a folder, and complaints about it."""

    def __init__(self, folder, rung, cmake):
        self.folder, self.rung, self.cmake, self.wrong = pathlib.Path(folder), rung, cmake, []
        for name, text in FILES.items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_text(text)

    def run(self, *command, code=0, says=()):
        """Runs a command; expects this exit code and these texts in its output."""
        run = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        output = run.stdout + run.stderr
        lacks = [text for text in says if text not in output]
        if run.returncode != code or lacks:
            self.wrong.append(f"{' '.join(command)}: exit code {run.returncode}, says nothing of {lacks}\n{output}")
        return output

    def check(self):
        """Builds, runs, mends the findings, and builds again."""
        ctest = str(pathlib.Path(self.cmake).with_name("ctest"))
        toolchain = self.run(self.rung, "emulate", "--toolchain-file").strip()
        self.run(self.cmake, "--toolchain", toolchain, "-S", ".", "-B", "build")
        self.run(self.cmake, "--build", "build")
        if self.wrong:
            return
        self.run("cat", "build/made.txt", says=["1 of 4"])
        found = ["x[100]: x has 100 elements", "at lib/kernels.cu:4", "use i < n instead of i <= n in line 4"]
        self.run(self.rung, "emulate", "build/app", code=66, says=found)
        self.run(self.rung, "emulate", "--order", "all", "build/app", "--", "--size", "100", code=66,
                 says=[*found, "under orders forward, reverse and random:1"])
        self.run(self.rung, "emulate", "build/app", "--", "--size", "96")
        self.run(ctest, "--test-dir", "build", says=["100% tests passed"])
        # Sources that include a changed header are rebuilt; with a bug for 96 elements its test fails.
        header = self.folder / "include" / "kernels.cuh"
        header.write_text(header.read_text().replace("more = 0", "more = 1"))
        self.run(self.cmake, "--build", "build", says=["kernels.cu.o", "main.cu.o"])
        self.run(ctest, "--test-dir", "build", code=8, says=["0% tests passed"])
        # Neither a program of the system nor one beside sources is a program of ours.
        self.run(self.rung, "emulate", "/bin/true", code=2, says=["a source ends with .cu"])
        self.run(self.rung, "emulate", "build/app", "main.cu", code=2, says=["build/app is a program: given 2 files"])


def wrong_builds(rung, folder):
    """Returns complaints about builds as by a Makefile: objects by -c, with dependencies, then a program."""
    build = [rung, "emulate", "--build"]
    commands = [[*build, "-arch=sm_90", "-O3", "-Iinclude", "-MD", "-MF", "k.d", "-c", "lib/kernels.cu", "-o", "k.o"],
                [*build, "-c", "lib/parts.cu"], [*build, "-c", "host.cpp", "-o", "host.o"],
                [*build, "-Iinclude", "-DFACTOR=2", "main.cu", "k.o", "parts.o", "host.o", "-o", "made"],
                [rung, "emulate", "made", "--", "--size", "64"]]
    for command in commands:
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            return [f"{' '.join(command)}: exit code {run.returncode}\n{run.stdout}{run.stderr}"]
    written = pathlib.Path(folder, "k.d").read_text()
    return [] if "include/kernels.cuh" in written else [f"k.d has no kernels.cuh: {written[:500]}"]


def main():
    rung, cmake = map(os.path.abspath, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        project = Project(folder, rung, cmake)
        wrong = wrong_builds(rung, folder)
        project.check()
        wrong += project.wrong
    print("\n".join([*wrong, f"{len(wrong)} wrong"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
