# SPDX-License-Identifier: Apache-2.0
"""Sources with arbitrary bytes in their names, kernels with non-ASCII names, and options without a value: `rung
emulate` reads them, prints the names in one line, writes valid JSON, or reports the error. usage: names.py RUNG"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# One write past the end, in line 3.
PAST_THE_END = b"""#include <cstdio>
__global__ void kernel(int* p) {
  p[threadIdx.x] = 1;
}
int main() {
  int* p;
  cudaMalloc(&p, 64);
  kernel<<<1, 17>>>(p);
  return cudaDeviceSynchronize();
}
"""

# file: its name in a message
FILES = {
    b"byte\xff.cu": b"byte\xff.cu",
    b"line\nfeed.cu": b"line\\nfeed.cu",
    b"escape\x1b[31m.cu": b"escape\\x1b[31m.cu",
    b'quo"te\\.cu': b'quo"te\\.cu',
    b"@at.cu": b"@at.cu",
    "größe ".encode() + 230 * b"x" + b".cu": "größe ".encode() + 230 * b"x" + b".cu",
}

# Launched so often that most launches run in the version compiled without hooks.
BEYOND_ASCII = """#include <cstdio>
__constant__ int größe = 32;
__device__ int zähler;
namespace größen {
template <class Zahl>
__device__ Zahl doppelt(Zahl ä) {
  return ä + ä;
}
static __device__ int verdoppeln(int ß) { return doppelt(ß); }
__global__ void kehre_um(int* zahlen) {
  __shared__ int fläche[32];
  fläche[threadIdx.x] = verdoppeln(threadIdx.x);
  __syncthreads();
  zahlen[threadIdx.x] = fläche[größe - 1 - threadIdx.x];
  if (threadIdx.x == 0) atomicAdd(&zähler, 1);
}
template <int Länge>
__global__ void fülle(int* zahlen) {
  extern __shared__ int speicher[];
  speicher[threadIdx.x] = Länge;
  __syncthreads();
  zahlen[threadIdx.x] += speicher[threadIdx.x];
}
}  // namespace größen
int main() {
  int* zahlen;
  cudaMalloc(&zahlen, 128);
  for (int i = 0; i < 40; ++i) {
    größen::kehre_um<<<1, 32>>>(zahlen);
    größen::fülle<7><<<1, 32, 128>>>(zahlen);
  }
  int ergebnis[32], anzahl = 0;
  cudaMemcpy(ergebnis, zahlen, 128, cudaMemcpyDeviceToHost);
  cudaMemcpyFromSymbol(&anzahl, z\\u00e4hler, 4);
  if (sizeof(R"(\\u00e4)") != 7) return 3;
  for (int i = 0; i < 32; ++i) {
    if (ergebnis[i] != 2 * (31 - i) + 7) return 1;
  }
  return anzahl == 40 ? 0 : 2;
}
"""

# words: expected message
REFUSED = [
    (["-D", ""], "-D: '' given; accepted: NAME or NAME=VALUE"),
    (["-D", "=1"], "-D: '=1' given"),
    (["-D", "1A"], "-D: '1A' given"),
    (["-D", "A=1\nB"], "-D: 'A=1\\nB' given; accepted: NAME or NAME=VALUE, in one line"),
    (["-I", ""], "-I: '' given"),
    (["-include", ""], "-include: its value is missing"),
    (["-l", ""], "-l: its value is missing"),
    ([""], "'': a source ends with .cu"),
    (["no\nsuch.cu"], "no\\nsuch.cu: there is no such file"),
    (["a\nb.txt"], "a\\nb.txt: a source ends with .cu"),
]


class Emulator:
    def __init__(self, rung, folder):
        self.rung, self.folder = rung, folder

    def run(self, *words):
        return subprocess.run([self.rung, "emulate", *words], cwd=self.folder, capture_output=True, timeout=100,
                              check=False)

    def report(self):
        """Returns the last run's report, which is removed; an empty one if the run wrote none."""
        path = pathlib.Path(self.folder, "report.json")
        if not path.exists():
            return {"findings": [], "kernels": []}
        text = path.read_bytes()
        path.unlink()
        return json.loads(text.decode("utf-8"))


def wrong_file(emulator, name, shown):
    """Returns complaints about findings, counters and listing of a source with this name."""
    path = os.path.join(os.fsencode(emulator.folder), name)
    with open(path, "wb") as file:
        file.write(PAST_THE_END)
    run = emulator.run("--checks", "always", "--json", "report.json", "--annotate", name)
    os.unlink(path)
    wrong = [f"exit code {run.returncode}"] if run.returncode != 66 else []
    if b"at " + shown + b":3\n" not in run.stderr.replace(b"./@", b"@"):
        wrong.append("the finding's line does not name it")
    if b"\n" + shown + b"\n" not in run.stdout.replace(b"./@", b"@").replace(b"\xef\xbf\xbd", b"\xff"):
        wrong.append("the listing does not name it")
    if b"p[threadIdx.x] = 1;" not in run.stdout:
        wrong.append("the listing has no source")
    report = emulator.report()
    files = {one["file"] for one in report["findings"]}
    files |= {line["file"] for kernel in report["kernels"] for line in kernel["lines"]}
    if files != {name.decode(errors="replace")}:
        wrong.append(f"in JSON it is {files}")
    return [f"{name!r}: {'; '.join(wrong)}\n{run.stdout!r}\n{run.stderr!r}"] if wrong else []


def wrong_names(emulator):
    """Returns complaints about non-ASCII names in a source: with all launches recorded, and with most launches in the
    version without hooks, whose symbols are matched to the other's."""
    pathlib.Path(emulator.folder, "beyond.cu").write_text(BEYOND_ASCII, encoding="utf-8")
    counted = emulator.run("--checks", "always", "--json", "report.json", "--counters", "beyond.cu")
    launches = {one["name"]: one["launches"] for one in emulator.report()["kernels"]}
    expected = {"größen::kehre_um": 40, "größen::fülle<7>": 40}
    wrong = []
    if counted.returncode != 0 or launches != expected or "\ngrößen::fülle<7>\n".encode() not in counted.stdout:
        wrong.append(f"beyond.cu: {counted.returncode}, {launches}\n{counted.stdout.decode()}{counted.stderr.decode()}")
    repeated = emulator.run("--checks", "4", "beyond.cu")
    for name in ("kehre_um", "fülle<7>"):
        if repeated.returncode != 0 or f"{name}: 5 of 40 launches were checked" not in repeated.stderr.decode():
            wrong.append(f"beyond.cu --checks 4: {repeated.returncode}, {name}\n{repeated.stderr.decode()}")
    return wrong


def wrong_refusals(emulator):
    pathlib.Path(emulator.folder, "good.cu").write_text("int main() {}\n")
    wrong = []
    for words, text in REFUSED:
        run = emulator.run(*words, "good.cu")
        if run.returncode != 2 or text.encode() not in run.stderr or run.stderr.count(b"\n") > 3:
            wrong.append(f"{words}: {run.returncode} {run.stderr.decode()}")
    return wrong


def main():
    with tempfile.TemporaryDirectory() as folder:
        emulator = Emulator(os.path.abspath(sys.argv[1]), folder)
        wrong = [one for name, shown in FILES.items() for one in wrong_file(emulator, name, shown)]
        wrong += wrong_names(emulator) + wrong_refusals(emulator)
    print("\n".join(wrong))
    print(f"{len(FILES) + 3 + len(REFUSED)} cases, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
