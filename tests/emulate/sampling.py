# SPDX-License-Identifier: Apache-2.0
"""Blocks of a large regular launch run unrecorded, and the report states how many; an irregular launch is recorded
completely, and the fault in its irregular block is found. usage: sampling.py RUNG [CASE ...]"""
import pathlib
import re
import subprocess
import sys
import tempfile

# 1024 blocks of 256 threads, each of which sums a column of 64 elements about three times.
N = 1 << 18
PROGRAM = """__global__ void sum(const float* in, float* out, const int* where, int n) {
  __shared__ float last[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < LENGTH; ++k) sum += in[k % 64 * n + i];
  last[threadIdx.x] = sum;
  __syncthreads();
  BODY
}
int main() {
  const int n = 1 << 18;
  float *in, *out;
  int* where;
  cudaMalloc(&in, 64 * n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  cudaMalloc(&where, n * sizeof(int));
  cudaMemset(in, 0, 64 * n * sizeof(float));
  int* host = new int[n];
  for (int i = 0; i < n; ++i) host[i] = i * 40503 & n - 1;
  host[700 * 256 + 5] = TARGET;
  cudaMemcpy(where, host, n * sizeof(int), cudaMemcpyHostToDevice);
  for (int launch = 0; launch < LAUNCHES; ++launch) sum<<<n / 256, 256>>>(in, out, where, n);
  for (int i = 0; i < n; ++i) host[i] = 7;
  cudaMemcpy(host, out, n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i) {
    if (host[i] != 0) return 5;
  }
  delete[] host;
  return 0;
}
"""
# 32 x 32 blocks of 16 x 16 threads, each of which writes an element of an image.
IMAGE = """__global__ void sum(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < LENGTH; ++k) sum += in[k % 64 * width + x];
  if (x < width && y < height) out[BODY] = sum;
}
int main() {
  const int width = TARGET;
  const size_t bytes = width * height * sizeof(float);
  float *in, *out, *host = new float[width * height];
  cudaMalloc(&in, bytes);
  cudaMalloc(&out, bytes);
  cudaMemset(in, 0, bytes);
  for (int launch = 0; launch < LAUNCHES; ++launch) {
    sum<<<dim3(width / 16, height / 16), dim3(16, 16)>>>(in, out, width, height);
  }
  cudaMemcpy(host, out, bytes, cudaMemcpyDeviceToHost);
  delete[] host;
  return 0;
}
"""
IMAGES = {"image": "512, height = 512", "image_by_columns": "512, height = 512", "narrow": "519, height = 512",
          "narrow_by_columns": "519, height = 512", "low": "512, height = 519",
          "image_late": "512, height = 512", "image_elsewhere": "512, height = 512"}
REGULAR = "out[i] = last[threadIdx.x ^ 1];"
UNCHECKED = re.compile(r"kernel sum: (?:.*; of those that were checked )?(\d+) of (\d+) blocks were checked; (\d+) "
                       r"that repeated them at other addresses ran unchecked \(--checks always checks all\)")

# name: (macros, options, exit code, messages, whether blocks run unrecorded)
CASES = {
    "regular": ({}, [], 0, [], True),
    "reverse": ({}, ["--order", "reverse"], 0, [], True),
    "random": ({}, ["--order", "random:3"], 0, [], True),
    "two_threads": ({}, ["--threads", "2"], 0, [], True),
    "launches": ({"LAUNCHES": "6"}, [], 0, ["launches were checked"], True),
    "always": ({}, ["--checks", "always"], 0, [], False),
    "counted": ({}, ["--counters"], 0, [], False),
    "small": ({"LENGTH": "2"}, [], 0, [], False),
    "medium": ({"LENGTH": "80"}, [], 0, [], True),
    "medium_loaded": ({"LENGTH": "80", "BODY": "out[where[i]] = last[threadIdx.x ^ 1];", "TARGET": "n"}, [], 66,
                      ["out_of_bounds (global)", "block (700, 0, 0), thread (5, 0, 0)"], False),
    # A loaded index: in a block in the middle one is wrong.
    "loaded": ({"BODY": "out[where[i]] = last[threadIdx.x ^ 1];", "TARGET": "n"}, [], 66,
               ["out_of_bounds (global)", "block (700, 0, 0), thread (5, 0, 0)"], False),
    # An irregular block, before any block runs unrecorded.
    "odd": ({"BODY": "if (blockIdx.x == 5 && threadIdx.x == 3) out[n] = 1; " + REGULAR}, ["--order", "forward"], 66,
            ["out_of_bounds (global)", "block (5, 0, 0)"], False),
    "triangle": ({"BODY": "for (int k = 0; k < blockIdx.x / 64; ++k) sum += in[i]; out[i] = sum;"}, [], 0, [], True),
    # The last block lacks a guard; neighbors write the same element; a barrier is missing.
    "edge": ({"BODY": "out[i + 1] = last[threadIdx.x ^ 1];"}, [], 66, ["out_of_bounds (global)", "block (1023, 0, 0)"],
             None),
    "neighbors": ({"BODY": "out[i] = last[threadIdx.x ^ 1]; if (threadIdx.x == 0 && i > 0) out[i - 1] = i;"}, [], 66,
                  ["race (global)"], None),
    "distant": ({"BODY": "const_cast<float*>(in)[i + 100 * 256] = 0; " + REGULAR}, [], 66, ["race (global)"], None),
    "late": ({"BODY": REGULAR + " last[threadIdx.x ^ 32] = 0;"}, [], 66, ["race (shared)"], None),
    # Blocks that may communicate.
    "counter": ({"BODY": REGULAR + " if (threadIdx.x == 0) atomicAdd((int*)where, 0);"}, [], 0, [], False),
    # Columns and rows of an image for which there are no threads.
    "image": ({}, [], 0, [], True),
    "image_by_columns": ({"BODY": "x * height + y"}, ["--threads", "2"], 0, [], True),
    "narrow": ({}, [], 66, ["uninitialized (global)"], True),
    "narrow_by_columns": ({"BODY": "x * height + y"}, ["--order", "reverse"], 66, ["uninitialized (global)"], True),
    "low": ({}, [], 66, ["uninitialized (global)"], True),
    # The last thread of the last block; a block that differs before its slope is known in both directions.
    "image_late": ({"BODY": "y * width + x + (x == 511 && y == 511)"}, ["--order", "forward"], 66,
                   ["out_of_bounds (global)", "block (31, 31, 0), thread (15, 15, 0)"], True),
    "image_elsewhere": ({"BODY": "y * width + x + (blockIdx.x == 9 && blockIdx.y == 1 ? width * height : 0)"},
                        ["--order", "forward"], 66, ["out_of_bounds (global)", "block (9, 1, 0)"], False),
}


def wrong(rung, folder, name):
    """Returns complaints about this case; an empty list if there are none."""
    macros, options, code, texts, left_out = CASES[name]
    values = {"BODY": REGULAR, "LENGTH": "200", "TARGET": "host[700 * 256 + 5]", "LAUNCHES": "1", **macros}
    source = PROGRAM
    if name in IMAGES:
        source = IMAGE
        values.update({"BODY": "y * width + x", "TARGET": IMAGES[name], **macros})
    for macro, value in values.items():
        source = source.replace(macro, value)
    path = pathlib.Path(folder, name + ".cu")
    path.write_text(source)
    threads = [] if "--threads" in options else ["--threads", "1"]
    run = subprocess.run([rung, "emulate", *threads, *options, path.name], cwd=folder, capture_output=True,
                         text=True)
    told = run.stderr
    result = [f"{name}: {text!r} is not said" for text in texts if text not in told]
    if run.returncode != code:
        result.append(f"{name}: exit code {run.returncode}, not {code}")
    unchecked = UNCHECKED.search(told)
    if left_out is not None and left_out != bool(unchecked):
        result.append(f"{name}: blocks should {'' if left_out else 'not '}be left out")
    if unchecked is not None:
        recorded, blocks, others = map(int, unchecked.groups())
        if recorded + others != blocks or recorded == 0 or blocks % (N // 256) != 0:
            result.append(f"{name}: {unchecked.group()}")
    return result + [told] if result else []


def main():
    """Runs all cases, or the named ones."""
    rung = str(pathlib.Path(sys.argv[1]).resolve())
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[2:] or CASES:
            failures += wrong(rung, folder, name)
    print("\n".join(failures) or f"{len(sys.argv[2:] or CASES)} cases")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
