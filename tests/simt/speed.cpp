// SPDX-License-Identifier: Apache-2.0
// Speed of the simulated GPU, with and without its recorder. Not a test: nothing is asserted.
// `speed_simt [gemm|tiled|switches|shuffles|accesses ...] [--threads N] [--rounds N]`; built by
// `ninja speed_simt`. Each scenario runs plain, counting, and counting and checking.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "rung/device/device.hpp"
#include "rung/simt/record.hpp"

namespace rung {
namespace {

constexpr int n = 256;  // extent of the products

/// Computes one element of c, n x n, per thread: 2 n accesses to global memory each.
__global__ void naive_gemm(const float* a, const float* b, float* c) {
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}

constexpr int tile = 16;
struct Tiles {
  float a[tile][tile], b[tile][tile];
};
/// Multiplies by tiles of 16 x 16 in shared memory: two barriers per tile.
__global__ void tiled_gemm(const float* a, const float* b, float* c) {
  Tiles& tiles = shared<Tiles>();
  const int y = static_cast<int>(threadIdx.y), x = static_cast<int>(threadIdx.x);
  const int row = static_cast<int>(blockIdx.y) * tile + y;
  const int column = static_cast<int>(blockIdx.x) * tile + x;
  float sum = 0;
  for (int first = 0; first < n; first += tile) {
    tiles.a[y][x] = a[row * n + first + x];
    tiles.b[y][x] = b[(first + y) * n + column];
    __syncthreads();
    for (int k = 0; k < tile; ++k) sum += tiles.a[y][k] * tiles.b[k][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

/// Waits at barriers only: each is one switch per thread.
__global__ void barriers(int count) {
  for (int i = 0; i < count; ++i) __syncthreads();
}

__global__ void shuffles(int count, int* out) {
  int value = static_cast<int>(threadIdx.x);
  for (int i = 0; i < count; ++i) value = __shfl_xor_sync(0xffffffffu, value, 1 + i % 31) + 1;
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

/// Accesses each thread's own 64 words repeatedly.
__global__ void accesses(float* memory, int count) {
  float* const mine = memory + blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned stride = gridDim.x * blockDim.x;
  for (int i = 0; i < count; ++i) mine[i % 64 * stride] += 1;
}

/// Writes 60 words per thread repeatedly, which no other thread reads. Rows are a power of two plus
/// a cache line apart, so that they do not map to one cache set.
__global__ void stores(float* memory, int count) {
  float* const mine = memory + blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned stride = gridDim.x * blockDim.x + 32;
  for (int i = 0; i < count; ++i) mine[i % 60 * stride] = static_cast<float>(i);
}

struct Scenario {
  std::string name, what;
  std::function<void(Context&)> run;
};

std::vector<Scenario> scenarios() {
  static std::vector<float> a(std::size_t{n} * n, 1), b(a), c(a), many(std::size_t{64} * 1024);
  static std::vector<int> out(256);
  using simt::record::register_memory;
  for (std::vector<float>* one : {&a, &b, &c, &many}) {
    register_memory({.begin = one->data(), .bytes = one->size() * sizeof(float), .name = "input"});
  }
  register_memory({.begin = out.data(), .bytes = out.size() * sizeof(int), .name = "output"});
  const auto switches = [](int threads) {
    return [threads](Context& context) {
      launch(context, {.grid = 1, .block = threads}, barriers, 100'000'000 / threads);
    };
  };
  return {
      {"gemm", "naive f32 gemm 256^3, 33.6 M accesses",
       [](Context& context) {
         launch(context, {.grid = {8, 32}, .block = {32, 8}}, naive_gemm, a.data(), b.data(),
                c.data());
       }},
      {"tiled", "tiled f32 gemm 256^3, 35.7 M accesses, 2.1 M switches",
       [](Context& context) {
         launch(
             context,
             {.grid = {n / tile, n / tile}, .block = {tile, tile}, .shared_bytes = sizeof(Tiles)},
             tiled_gemm, a.data(), b.data(), c.data());
       }},
      {"switches", "10^8 switches at barriers, a block of 256", switches(256)},
      {"switches32", "10^8 switches at barriers, a block of 32", switches(32)},
      {"switches1024", "10^8 switches at barriers, a block of 1024", switches(1000)},
      {"shuffles", "10^7 shuffles, a block of 256",
       [](Context& context) {
         launch(context, {.grid = 1, .block = 256}, shuffles, 10'000'000 / 256, out.data());
       }},
      {"stores", "33.6 M stores to global memory",
       [](Context& context) {
         launch(context, {.grid = 4, .block = 256}, stores, many.data(), 32768);
       }},
      {"accesses", "2 x 10^9 accesses of 256 KiB",
       [](Context& context) {
         launch(context, {.grid = 4, .block = 256}, accesses, many.data(), 1'000'000'000 / 1024);
       }},
  };
}

rusage used() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}
/// Returns the CPU time over all cores, the robust measure on a shared machine.
double cpu_seconds() {
  const timeval user = used().ru_utime, system = used().ru_stime;
  return static_cast<double>(user.tv_sec + system.tv_sec) +
         1e-6 * static_cast<double>(user.tv_usec + system.tv_usec);
}

void measure(const Scenario& scenario, const std::string& mode, int threads, int rounds) {
  Context context = Context::on(Backend::simt, threads);
  double min_wall = 1e9, min_cpu = 1e9;
  for (int i = 0; i < rounds; ++i) {
    if (mode != "plain") {
      simt::record::begin({.counters = true, .checks = mode == "checking"});
    }
    const double cpu = cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    scenario.run(context);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    min_wall = std::min(min_wall, wall.count());
    min_cpu = std::min(min_cpu, cpu_seconds() - cpu);
    if (mode != "plain" && !simt::record::end().findings.empty()) std::puts("findings!");
  }
  std::printf("%-13s %-9s %d thread%s: %8.1f ms, CPU %8.1f; peak %6ld KiB\n", scenario.name.c_str(),
              mode.c_str(), threads, threads == 1 ? " " : "s", min_wall * 1e3, min_cpu * 1e3,
              used().ru_maxrss);
  std::fflush(stdout);
}

}  // namespace
}  // namespace rung

int main(int argc, char** argv) {
  int threads = 1, rounds = 5;
  std::vector<std::string> names, modes;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--threads" && i + 1 < argc) {
      threads = std::atoi(argv[++i]);
    } else if (word == "--rounds" && i + 1 < argc) {
      rounds = std::atoi(argv[++i]);
    } else if (word == "plain" || word == "counting" || word == "checking") {
      modes.push_back(word);
    } else {
      names.push_back(word);
    }
  }
  if (modes.empty()) modes = {"plain", "counting", "checking"};
  for (const auto& scenario : rung::scenarios()) {
    const bool asked = std::find(names.begin(), names.end(), scenario.name) != names.end();
    if (names.empty()) std::printf("%-14s %s\n", scenario.name.c_str(), scenario.what.c_str());
    if (!asked) continue;
    for (const std::string& mode : modes) rung::measure(scenario, mode, threads, rounds);
  }
}
