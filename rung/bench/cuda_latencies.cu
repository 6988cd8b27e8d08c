// SPDX-License-Identifier: Apache-2.0
// Measures latencies of a GPU, its rates of atomic additions, and bandwidth and latency of the host
// link.
#include <cuda_runtime.h>

#include <cstring>
#include <vector>

#include "rung/bench/clock.hpp"
#include "rung/bench/gpu_rates.hpp"
#include "rung/bench/latency_kernels.hpp"

namespace rung::bench {
namespace {

/// Page-locked host memory, directly accessible to copies and kernels.
class PinnedBuffer {
 public:
  explicit PinnedBuffer(std::size_t bytes) {
    check_gpu(cudaHostAlloc(&memory_, bytes, cudaHostAllocMapped));
    std::memset(memory_, 1, bytes);
  }
  ~PinnedBuffer() { cudaFreeHost(memory_); }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  [[nodiscard]] void* get() const { return memory_; }

 private:
  void* memory_ = nullptr;
};

/// Runs `launch(walk)`, whose kernel takes `steps` timed steps, and returns the time of one step.
template <class Launch>
LatencyRate walk_rate(const char* what, double bytes, unsigned steps, Launch launch) {
  const DeviceBuffer memory(sizeof(Walk));
  check_gpu(cudaMemset(memory.get(), 0, sizeof(Walk)));
  auto* walk = static_cast<Walk*>(memory.get());
  const double seconds = min_launch_seconds([&] { launch(walk); });
  Walk done{};
  check_gpu(cudaMemcpy(&done, walk, sizeof(Walk), cudaMemcpyDeviceToHost));
  const double share = static_cast<double>(done.cycles) / static_cast<double>(done.cycles_in_all);
  return {what, bytes, seconds * share / steps, static_cast<double>(done.cycles) / steps};
}

/// Measures a pointer chain of `bytes`, a power of two, in memory that kernels can access.
template <class Next>
LatencyRate memory_rate(const char* what, unsigned* chain, std::size_t bytes, bool warm,
                        unsigned steps, Next next) {
  const auto lines = static_cast<unsigned>(bytes / (words_per_line * sizeof(unsigned)));
  link_chain<<<256, 256>>>(chain, lines);
  return walk_rate(what, static_cast<double>(bytes), steps, [&](Walk* walk) {
    follow_in_global_memory<<<1, 1>>>(chain, warm ? lines : 0, steps, next, walk);
  });
}

void measure_latencies(Gpu& gpu) {
  constexpr unsigned steps = 16384;
  constexpr unsigned host_steps = 1024;
  constexpr std::size_t l1_bytes = std::size_t{16} << 10;
  constexpr std::size_t l2_bytes = std::size_t{4} << 20;      // larger than any L1, within any L2
  constexpr std::size_t memory_bytes = std::size_t{1} << 30;  // beyond any L2; each line read once
  const DeviceBuffer buffer(memory_bytes);
  const PinnedBuffer host(l2_bytes);
  auto* chain = static_cast<unsigned*>(buffer.get());
  auto* host_chain = static_cast<unsigned*>(host.get());
  const AtomicAdd add{0};
  std::vector<LatencyRate>& rates = gpu.latencies;
  rates.push_back(walk_rate("multiply-add", 0, steps, [&](Walk* walk) {
    multiply_add_chain<<<1, 1>>>(0.5f, steps, static_cast<float*>(buffer.get()), walk);
  }));
  rates.push_back(walk_rate("shared memory", sizeof(SharedChain), steps, [&](Walk* walk) {
    follow_in_shared_memory<<<1, 1, sizeof(SharedChain)>>>(steps, Load{}, walk);
  }));
  rates.push_back(memory_rate("L1", chain, l1_bytes, true, steps, Load{}));
  rates.push_back(memory_rate("L2", chain, l2_bytes, true, steps, Load{}));
  rates.push_back(memory_rate("memory", chain, memory_bytes, false, steps, Load{}));
  rates.push_back(memory_rate("host memory", host_chain, l2_bytes, false, host_steps, Load{}));
  rates.push_back(walk_rate("atomic, shared memory", sizeof(SharedChain), steps, [&](Walk* walk) {
    follow_in_shared_memory<<<1, 1, sizeof(SharedChain)>>>(steps, add, walk);
  }));
  rates.push_back(memory_rate("atomic, L2", chain, l2_bytes, true, steps, add));
  rates.push_back(memory_rate("atomic, memory", chain, memory_bytes, false, steps, add));
  rates.push_back(memory_rate("atomic, host memory", host_chain, l2_bytes, false, host_steps, add));
}

void measure_atomics(Gpu& gpu) {
  const int blocks = gpu.multiprocessors * (2048 / atomic_block);
  const int threads = blocks * atomic_block;
  const DeviceBuffer buffer(static_cast<std::size_t>(threads) * sizeof(unsigned));
  const PinnedBuffer host(static_cast<std::size_t>(threads) * sizeof(unsigned));
  const auto add = [&](const char* what, int turns, auto launch) {
    const double seconds = min_launch_seconds([&] { launch(turns); });
    gpu.atomics.push_back({what, threads, static_cast<double>(threads) * turns / seconds});
  };
  const auto global = [&](void* memory, unsigned spread) {
    return [=](int turns) {
      add_to_global_memory<<<blocks, atomic_block>>>(static_cast<unsigned*>(memory), spread, 1,
                                                     turns);
    };
  };
  const auto in_shared = [&](unsigned spread) {
    return [=, &buffer](int turns) {
      add_to_shared_memory<<<blocks, atomic_block, sizeof(SharedSums)>>>(
          static_cast<unsigned*>(buffer.get()), spread, 1, turns);
    };
  };
  add("shared memory, one address per block", 64, in_shared(0));
  add("shared memory, an address per thread", 1024, in_shared(1));
  add("one address", 16, global(buffer.get(), 0));
  add("an address per thread", 64, global(buffer.get(), 1));
  add("host memory, an address per thread", 1, global(host.get(), 1));
}

void measure_link(Gpu& gpu) {
  constexpr std::size_t bytes = std::size_t{256} << 20;
  constexpr int samples = 5;
  const DeviceBuffer device(bytes);
  const PinnedBuffer pinned(bytes);
  std::vector<char> pageable(bytes, 1);
  const auto seconds = [&](void* to, const void* from, std::size_t count) {
    double least = 0;
    for (int i = 0; i <= samples; ++i) {
      const double begin = now();
      check_gpu(cudaMemcpy(to, from, count, cudaMemcpyDefault));
      check_gpu(cudaDeviceSynchronize());
      const double took = now() - begin;
      if (i == 1) least = took;
      if (i > 1) least = smaller(least, took);
    }
    return least;
  };
  const struct {
    const char* name;
    void* memory;
  } hosts[] = {{"pageable", pageable.data()}, {"pinned", pinned.get()}};
  for (const auto& [name, memory] : hosts) {
    gpu.link.push_back({name, "to the GPU",
                        static_cast<double>(bytes) / seconds(device.get(), memory, bytes),
                        seconds(device.get(), memory, sizeof(int))});
    gpu.link.push_back({name, "from the GPU",
                        static_cast<double>(bytes) / seconds(memory, device.get(), bytes),
                        seconds(memory, device.get(), sizeof(int))});
  }
}

void measure(int device, Gpu& gpu) {
  int before = 0;
  check_gpu(cudaGetDevice(&before));
  check_gpu(cudaSetDevice(device));
  measure_latencies(gpu);
  measure_atomics(gpu);
  measure_link(gpu);
  check_gpu(cudaSetDevice(before));
}

const GpuLatencyMeter self(measure);

}  // namespace
}  // namespace rung::bench
