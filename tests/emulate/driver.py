# SPDX-License-Identifier: Apache-2.0
"""Projects without any knowledge of rung are built with `rung nvcc` in place of nvcc: four of CMake, two
makefiles, a library for ctypes; and the driver's messages about options. usage: driver.py RUNG CMAKE [CASE ...]"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
RUNG, CMAKE = map(os.path.abspath, sys.argv[1:3])
NVCC = str(pathlib.Path(RUNG).with_name("rung-nvcc"))
CTEST = str(pathlib.Path(CMAKE).with_name("ctest"))
SMALL = """#include <cstdio>
__global__ void kernel(int* p, int n) {
  if (threadIdx.x <= n) p[threadIdx.x] = %s;
}
int main() {
  int *p, h = 0;
  cudaMalloc(&p, 64);
  kernel<<<1, 32>>>(p, LIMIT);
  cudaMemcpy(&h, p, sizeof h, cudaMemcpyDeviceToHost);
  printf("%%d\\n", h);
}
"""

# A host thread makes what another one uses, each in its stream 0.
TWO_STREAMS = """#include <thread>
__global__ void make(int* p) { p[threadIdx.x] = threadIdx.x; }
__global__ void use(int* to, const int* from) { to[threadIdx.x] = from[threadIdx.x] + 1; }
int main() {
  int *a, *b, h = 0;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  std::thread([=] {
    make<<<1, 64>>>(a);
#ifdef SYNCHRONIZE
    cudaStreamSynchronize(0);
#endif
  }).join();
  use<<<1, 64>>>(b, a);
  cudaMemcpy(&h, b + 63, sizeof h, cudaMemcpyDeviceToHost);
  return h != 64;
}
"""


class Driver(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def run_here(self, *command, code=0, environment=None, folder=None):
        """Runs a command, which must end with this code; returns its output and error output."""
        run = subprocess.run(command, cwd=folder or self.folder, capture_output=True, text=True, check=False,
                             env=dict(os.environ, **(environment or {})), timeout=250)
        self.assertEqual(run.returncode, code, f"{command}\n{run.stdout}{run.stderr}")
        return run.stdout + run.stderr

    def copy(self, project):
        shutil.copytree(HERE / "projects" / project, self.folder, dirs_exist_ok=True)

    def configure(self, *options):
        output = self.run_here(CMAKE, f"-DCMAKE_CUDA_COMPILER={NVCC}", "-S", ".", "-B", "build", *options)
        if "Detecting CUDA" in output:  # the first configuration
            self.assertIn("CUDA compiler identification is NVIDIA 13.0", output)
        self.run_here(CMAKE, "--build", "build")

    def test_cmake_library(self):
        self.copy("library")
        for shared in ("OFF", "ON"):
            self.configure(f"-DVECTORS_SHARED={shared}")
            self.assertIn("100% tests passed", self.run_here(CTEST, "--test-dir", "build"))
        # Installed programs run, and a finding fails the test that requests this.
        self.run_here(CMAKE, "--install", "build", "--prefix", "installed")
        self.assertEqual(self.run_here("installed/bin/test_host", environment={
            "LD_LIBRARY_PATH": str(self.folder / "installed/lib")}), "750\n")
        self.configure("-DCMAKE_CUDA_FLAGS=-DMISSING_BARRIER")
        output = self.run_here(CTEST, "--test-dir", "build", "-V", code=8,
                               environment={"RUNG_EMULATE": "--exit-code 66 --checks always"})
        self.assertIn("race (shared)", output)
        self.assertIn("put __syncthreads()", output)

    def test_cmake_separable(self):
        self.copy("separable")
        self.configure()
        self.assertIn("100% tests passed", self.run_here(CTEST, "--test-dir", "build"))
        self.assertRegex(self.run_here("build/particles"), r"^3 steps, -?\d")
        # Dependencies are written: sources that include a changed header are compiled again.
        header = self.folder / "include/forces.cuh"
        header.write_text(header.read_text() + "// changed\n")
        self.assertIn("step.cu.o", self.run_here(CMAKE, "--build", "build"))

    def test_cmake_runtime(self):
        self.copy("runtime")
        self.configure()
        self.assertIn("100% tests passed", self.run_here(CTEST, "--test-dir", "build"))

    def test_make(self):
        self.copy("make")
        self.assertIn("good", self.run_here("make", "test", f"NVCC={RUNG} nvcc"))
        self.assertIn("up to date", self.run_here("make", "app", f"NVCC={RUNG} nvcc"))
        header = self.folder / "scale.h"
        header.write_text(header.read_text().replace("factor = 3", "factor = 4"))
        self.assertIn("-dc scale.cu", self.run_here("make", "test", f"NVCC={RUNG} nvcc"))

    def test_separate_compilation_by_cmake(self):
        self.copy("styles")
        self.configure()
        self.assertIn("100% tests passed", self.run_here(CTEST, "--test-dir", "build"))

    def test_separate_compilation_by_make(self):
        self.copy("styles")
        toolkit = self.run_here(NVCC, "--rung-toolkit").strip()
        build = ["make", f"NVCC={RUNG} nvcc", f"CUDA_PATH={toolkit}"]
        self.run_here(*build)
        for program in ("linked_by_host", "linked_by_nvcc", "at_once"):
            self.assertEqual(self.run_here(f"./{program}"), "401 1\n")
        (self.folder / "affine.h").touch()
        self.assertIn("-dc affine.cu", self.run_here(*build, "-n"))
        self.run_here(RUNG, "emulate", "-rdc=true", "affine.cu", "parameters.cu", "main.cpp")

    def test_device_code_of_one_name_in_several_files(self):
        parts = {"first": (1, "int second();"), "second": (10, "")}
        for name, (value, declaration) in parts.items():
            call = "int main() { return first() == 2 && second() == 11 ? 0 : 1; }" if declaration else ""
            (self.folder / f"{name}.cu").write_text(
                f"""{declaration}
__device__ int value = {value};
__constant__ int unused[4];
__device__ int shifted(int x);
__device__ int shifted(int x) {{ return x + value; }}
__global__ static void kernel(int* p) {{ *p = shifted(1); }}
int {name}() {{
  int *p, h = 0;
  cudaMalloc(&p, sizeof h);
  kernel<<<1, 1>>>(p);
  cudaMemcpy(&h, p, sizeof h, cudaMemcpyDeviceToHost);
  cudaFree(p);
  return h;
}}
{call}
""")
        # Without -rdc the files' device code is separate.
        self.run_here(NVCC, "-Xcompiler", "-Wall", "first.cu", "second.cu", "-o", "app")
        self.run_here("./app")
        self.assertIn("multiple definition", self.run_here(NVCC, "-rdc=true", "first.cu", "second.cu", code=2))

    def test_host_code_that_writes_device_variables(self):
        (self.folder / "host.cu").write_text("""__device__ int counter;
__device__ __managed__ int shared;
int main() {
  shared = 2;
  counter = 3;
}
""")
        output = self.run_here(NVCC, "host.cu")
        self.assertIn('host.cu:5: warning: a __device__ variable "counter" cannot be directly written', output)
        self.assertNotIn('"shared"', output)

    def test_ctypes(self):
        self.copy("python")
        self.run_here(NVCC, "-shared", "-Xcompiler", "-fPIC", "-o", "libadd.so", "add.cu")
        self.assertEqual(self.run_here(sys.executable, "add.py", "./libadd.so", "0"), "[1, 2] 1.0 100.0\n")
        output = self.run_here(sys.executable, "add.py", "./libadd.so", "1", code=66,
                               environment={"RUNG_EMULATE": "--exit-code 66"})
        self.assertIn("out_of_bounds (global)", output)
        self.assertIn("at add.cu:8", output)

    def test_setup_py_links_by_the_host_compiler(self):
        self.copy("python")
        toolkit = self.run_here(NVCC, "--rung-toolkit").strip()
        self.run_here(f"{toolkit}/bin/nvcc", "-Xcompiler", "-fPIC", "-c", "add.cu", "-o", "add.o")
        self.run_here("g++", "-shared", "add.o", "-o", "libadd.so", f"-L{toolkit}/lib64", "-lcudart")
        self.assertEqual(self.run_here(sys.executable, "add.py", "./libadd.so", "0"), "[1, 2] 1.0 100.0\n")

    def test_host_sources_of_older_standards(self):
        self.copy("host17")
        toolkit = self.run_here(NVCC, "--rung-toolkit").strip()
        self.run_here(NVCC, "-c", "scale.cu")
        for standard in ("14", "17", "20"):
            with self.subTest(standard=standard):
                self.run_here("g++", f"-std=c++{standard}", "-Wall", "-Wextra", "-Werror", "-isystem",
                              f"{toolkit}/include", "-c", "main.cpp", "-o", "main.o")
                self.run_here(NVCC, "main.o", "scale.o", "-lcublas", "-o", "app")
                self.assertEqual(self.run_here("./app"), "1024\n")
                self.run_here(NVCC, f"-std=c++{standard}", "main.cpp", "scale.cu", "-lcublas", "-o", "app")
                self.assertEqual(self.run_here("./app"), "1024\n")

    def test_default_streams_per_thread(self):
        (self.folder / "small.cu").write_text(TWO_STREAMS)
        ordered = self.run_here(NVCC, "small.cu") + self.run_here("./a.out")
        self.assertEqual(ordered, "")
        # Stream 0 of a host thread does not wait for that of another.
        for words in (["--default-stream", "per-thread"], ["--default-stream=per-thread"],
                      ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]):
            with self.subTest(words=words):
                self.run_here(NVCC, *words, "small.cu")
                found = self.run_here("./a.out", code=66, environment={"RUNG_EMULATE": "--exit-code 66"})
                for text in ("stream_order", "the thread's default stream"):
                    self.assertIn(text, found)
                self.run_here(NVCC, *words, "-DSYNCHRONIZE", "small.cu")
                self.assertEqual(self.run_here("./a.out"), "")
        self.run_here(RUNG, "emulate", "--default-stream", "per-thread", "small.cu", code=66)
        self.run_here(RUNG, "emulate", "--default-stream", "legacy", "small.cu")
        self.assertIn("accepted: legacy, null, per-thread",
                      self.run_here(NVCC, "--default-stream", "other", "small.cu", code=2))

    def test_program_runs_by_itself(self):
        (self.folder / "small.cu").write_text(SMALL % 7)
        self.run_here(NVCC, "-DLIMIT=15", "-o", "right", "small.cu")
        self.assertEqual(self.run_here("./right"), "7\n")
        self.run_here(NVCC, "-D", "LIMIT=16", "small.cu")
        found = self.run_here("./a.out")
        for text in ("out_of_bounds (global)", "at small.cu:3", "guard the access: if (threadIdx.x < n)"):
            self.assertIn(text, found)
        self.run_here("./a.out", code=66, environment={"RUNG_EMULATE": "--exit-code=66 --json found.json"})
        self.assertIn('"findings":[{', re.sub(r"\s", "", (self.folder / "found.json").read_text()))
        self.assertEqual(self.run_here("./a.out", environment={"RUNG_EMULATE": "--no-checks"}), "7\n")
        self.assertIn("which is no option", self.run_here("./a.out", code=2, environment={"RUNG_EMULATE": "--x"}))
        # `rung emulate` runs the program, too, with its own options.
        self.run_here(RUNG, "emulate", "--order", "all", "a.out", code=66)

    def test_options(self):
        source = self.folder / "small.cu"
        source.write_text(SMALL % "__CUDA_ARCH__")
        limit = "-DLIMIT=1"
        for words, value in ((["-arch=sm_80"], "800"), (["-arch", "sm_90a"], "900"), ([], "900"),
                             (["-gencode", "arch=compute_70,code=sm_70", "-gencode=arch=compute_80,code=[sm_80]"],
                              "800")):
            with self.subTest(words=words):
                self.run_here(NVCC, limit, *words, "-o", "program", source.name)
                self.assertEqual(self.run_here("./program"), value + "\n")
        words = ("-G -g -lineinfo --expt-relaxed-constexpr --extended-lambda -Werror=all-warnings -Werror all-warnings "
                 "--threads=0 -t4 -O3 -maxrregcount=32 -use_fast_math -Xptxas -v,-O3 -ccbin g++ -cudart shared -MD "
                 "-MF s.d -MT target -forward-unknown-to-host-compiler -fno-strict-overflow -odir . -c").split()
        self.run_here(NVCC, limit, *words, source.name)
        self.assertTrue((self.folder / "s.d").read_text().startswith("target: small.cu"))
        (self.folder / "words").write_text(f'-DLIMIT=1 "{source.name}"\n-o from_file')
        self.run_here(NVCC, "--options-file", "words")
        self.run_here("./from_file")
        self.assertIn("kernel", self.run_here(NVCC, "-E", source.name))
        self.assertIn("small.o: small.cu", self.run_here(NVCC, "-MM", source.name))
        self.run_here(NVCC, limit, "-lib", "-o", "libsmall.a", source.name)
        self.run_here(NVCC, "libsmall.a", "-o", "from_archive")
        self.run_here("./from_archive")
        self.run_here(NVCC, "-dlink", "small.o", "-o", "linked.o")
        self.run_here(NVCC, "small.o", "linked.o", "-o", "separable")
        self.run_here(NVCC, limit, "--keep", "--keep-dir", "kept", "-c", source.name)
        self.assertTrue(list((self.folder / "kept").glob("*.rung.ii")))

    def test_folders_of_the_environment_stand_behind_our_headers(self):
        (self.folder / "small.cu").write_text("#include <cmath>\n#include <math.h>\n" + SMALL % "lerp(1, 2, 3)" +
                                              "#include <type_traits>\n")
        source = (self.folder / "small.cu").read_text()
        lerp = "__device__ int lerp(int a, int b, int t) { return a + b * t; }\n"
        (self.folder / "small.cu").write_text(lerp + source)
        found = subprocess.run(["g++", "-E", "-v", "-x", "c++", "/dev/null"], capture_output=True, text=True,
                               check=True)
        library = re.search(r"^ (/\S*/c\+\+/\d+)$", found.stderr, re.M).group(1)
        for name in ("CPATH", "CPLUS_INCLUDE_PATH"):
            self.run_here(NVCC, "-DLIMIT=1", "small.cu", environment={name: library})
            self.assertEqual(self.run_here("./a.out"), "7\n")

    def test_what_is_refused(self):
        (self.folder / "small.cu").write_text(SMALL % 7)
        for words, code, text in (
                (["-ptx", "small.cu"], 3, "no PTX"), (["-cubin", "small.cu"], 3, "no machine code"),
                (["--bogus", "small.cu"], 2, "'--bogus': nvcc has no such option"),
                (["-o"], 2, "-o: its value is missing"), (["absent.cu"], 2, "absent.cu: there is no such file"),
                ([], 2, "no source"), (["kernel.ptx"], 3, "no PTX"), (["-c", "small.cu"], 2, "does not compile")):
            with self.subTest(words=words):
                self.assertIn(text, self.run_here(NVCC, *words, code=code))

    def test_commands_of_the_page(self):
        text = (HERE.parents[1] / "docs/emulate.md").read_text()
        section = text[text.index("## Projects: rung nvcc"):text.index("### By a toolchain file")]
        commands = [line.split("  #")[0] for line in section.split("```")[1].strip().splitlines()]
        self.assertEqual(len(commands), 6)
        path = f"{pathlib.Path(RUNG).parent}:{pathlib.Path(CMAKE).parent}:{os.environ['PATH']}"
        for project in ("make", "library", "python"):
            self.copy(project)
        for command in commands:
            self.run_here("/bin/sh", "-c", command, environment={"PATH": path})
        self.assertTrue((self.folder / "libadd.so").exists())
        self.assertEqual(self.run_here(RUNG, "complete-words", "--", "nvcc", "--dry").strip(), "--dryrun")

    def test_questions_of_build_systems(self):
        self.assertRegex(self.run_here(NVCC, "--version"), r"nvcc: NVIDIA \(R\) Cuda compiler driver[^\n]*\n"
                         r"Cuda compilation tools, release 13\.0, V13\.0\.0\n")
        plan = self.run_here(NVCC, "--dryrun", "any.cu")
        for line in (r"#\$ TOP=/", r"#\$ INCLUDES=\"-I/", r"#\$ LIBRARIES=\"-L/", "-arch compute_90",
                     "-lcudart_static"):
            self.assertRegex(plan, line)
        self.assertIn("make NVCC", self.run_here(RUNG, "nvcc", "--help"))
        self.assertIn("make NVCC", self.run_here(RUNG, "help", "nvcc"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
