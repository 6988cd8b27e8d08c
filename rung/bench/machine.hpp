// SPDX-License-Identifier: Apache-2.0
// The machine: its hardware and its measured ceilings, multiply-adds per second for each
// instruction set and bandwidth for each memory level. Kernels are compared to these ceilings, not
// to a data sheet.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rung::bench {

/// Arithmetic ceiling: independent multiply-adds in registers.
struct ArithmeticRate {
  std::string isa;      // scalar, avx2, avx512
  std::string element;  // f32, f64; bf16 for dot products of pairs into f32
  int threads = 1;
  double operations_per_second = 0;
};

/// Bandwidth ceiling: each thread accesses its own buffer.
struct BandwidthRate {
  std::string level;   // L1, L2, L3, memory
  std::string access;  // read, copy (bytes read plus bytes written)
  int threads = 1;
  double bytes = 0;  // of all buffers
  double bytes_per_second = 0;
};

/// Latency of one step of a chain of dependent accesses, each at the address that the previous one
/// loaded.
struct LatencyRate {
  std::string level;  // L1, L2, L3, memory; on a GPU also shared memory, host memory, atomics
  double bytes = 0;   // of the chain's buffer, visited in an order that no prefetcher predicts
  double seconds = 0;
  double cycles = 0;  // of the SM; 0 for a CPU
};

/// Throughput of independent atomic additions.
struct AtomicRate {
  std::string target;  // one address, an address per thread
  int threads = 1;
  double operations_per_second = 0;  // of all threads
};

/// Bandwidth and latency of copies between host and GPU memory.
struct LinkRate {
  std::string memory;     // host memory: pageable, pinned
  std::string direction;  // to the GPU, from the GPU
  double bytes_per_second = 0;
  double seconds = 0;  // per copy of 4 bytes
};

struct GpuRate {
  std::string element;  // f32, f64: FMA units; tf32, f16, bf16: tensor cores
  double operations_per_second = 0;
};

struct Gpu {
  std::string name;
  int compute_capability = 0;
  int multiprocessors = 0;
  double l2_bytes = 0;
  double memory_bytes = 0;
  double read_bytes_per_second = 0;
  double copy_bytes_per_second = 0;  // bytes read plus bytes written
  std::vector<GpuRate> arithmetic;
  std::vector<LatencyRate> latencies;
  std::vector<AtomicRate> atomics;
  std::vector<LinkRate> link;
};

struct Machine {
  std::string cpu;  // "AMD EPYC 9755"
  int cores = 1;    // available to this process
  std::string isa;  // widest supported
  double l1_bytes = 0;
  double l2_bytes = 0;
  double l3_bytes = 0;
  double memory_bytes = 0;
  std::vector<Gpu> gpus;
  std::string compiler;
  std::string version;  // of rung: ceilings of different versions are not comparable
  std::string date;     // of the measurement

  /// Noise of the measurement: median over all CPU rates of (median time / least time - 1).
  double noise = 0;
  std::vector<ArithmeticRate> arithmetic;
  std::vector<BandwidthRate> bandwidth;
  /// Filled by measure_latencies(), like the latencies, atomics and links of the GPUs.
  std::vector<LatencyRate> latencies;
  std::vector<AtomicRate> atomics;

  /// Returns whether the rates may be too low because other processes ran during the measurement.
  [[nodiscard]] bool noisy() const { return noise > max_noise; }
  static constexpr double max_noise = 0.1;
};

/// Returns the machine's properties, without measured rates.
Machine describe_machine();

using MachineProgress = std::function<void(std::string_view)>;
/// Measures all ceilings in a few seconds. Calls `progress` with the name of each measurement.
void measure_machine(Machine& machine, const MachineProgress& progress);

/// Measures latencies, atomic additions and the GPUs' links to the host, in a few seconds.
void measure_latencies(Machine& machine, const MachineProgress& progress);

/// Returns the machine with its ceilings, from the cache file if it matches this machine and
/// version, else measured (again if the first measurement is noisy) and cached. A noisy measurement
/// never replaces a quiet one in the cache. A cache that is damaged or cannot be written causes a
/// message on standard error, not an exception.
Machine known_machine(bool refresh, const MachineProgress& progress,
                      void (*measure)(Machine&, const MachineProgress&) = measure_machine);

/// Returns known_machine() with latencies, which are measured and cached if missing.
Machine known_machine_with_latencies(bool refresh, const MachineProgress& progress);

/// Returns the machine from the cache file, or nullopt if known_machine() would have to measure.
std::optional<Machine> remembered_machine();

/// Returns the path of the cache file of known_machine().
std::string machine_cache_path();

std::string machine_to_json(const Machine& machine);
/// Parses the output of machine_to_json(); throws Error(io) for any other text.
Machine machine_from_json(const std::string& text);

/// Registration of a function that measures a GPU's ceilings. A backend registers one static
/// object, in a separate file, because the function needs the GPU's compiler.
class GpuMeter {
 public:
  /// Fills in the rates of GPU `device`.
  using Measure = void (*)(int device, Gpu& gpu);
  explicit GpuMeter(Measure measure);
};
/// Registration of a function that measures a GPU's latencies, atomics and host link.
class GpuLatencyMeter {
 public:
  explicit GpuLatencyMeter(GpuMeter::Measure measure);
};

}  // namespace rung::bench
