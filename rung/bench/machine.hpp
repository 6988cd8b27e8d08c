// SPDX-License-Identifier: Apache-2.0
// The machine: what it is made of, and how fast it can be at best - multiply-adds per second for
// each instruction set, bytes per second for each level of memory. Kernels are held against these
// measured ceilings, not against a data sheet.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rung::bench {

/// Arithmetic at its best: independent multiply-adds on registers.
struct ArithmeticRate {
  std::string isa;      // scalar, avx2, avx512
  std::string element;  // f32, f64; bf16 for dot products of pairs into f32
  int threads = 1;
  double operations_per_second = 0;
};

/// Memory at its best: every thread on a buffer of its own.
struct BandwidthRate {
  std::string level;   // L1, L2, L3, memory
  std::string access;  // read, copy (bytes read plus bytes written)
  int threads = 1;
  double bytes = 0;  // of all buffers together
  double bytes_per_second = 0;
};

/// Time of one step of a chain of dependent accesses: each address is what the one before it read.
struct LatencyRate {
  std::string level;  // L1, L2, L3, memory; of a GPU also shared memory, host memory, atomics
  double bytes = 0;   // that the chain goes through, in an order that no prefetcher predicts
  double seconds = 0;
  double cycles = 0;  // of the SM; 0 for a CPU
};

/// Atomic additions that do not wait for each other.
struct AtomicRate {
  std::string target;  // one address, an address per thread
  int threads = 1;
  double operations_per_second = 0;  // of all threads together
};

/// Copies between the host's memory and a GPU's.
struct LinkRate {
  std::string memory;     // of the host: pageable, pinned
  std::string direction;  // to the GPU, from the GPU
  double bytes_per_second = 0;
  double seconds = 0;  // of a copy of 4 bytes
};

struct GpuRate {
  std::string element;  // f32: without tensor cores; tf32, f16, bf16: with them
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
  int cores = 1;    // that this process may use
  std::string isa;  // the best the CPU has
  double l1_bytes = 0;
  double l2_bytes = 0;
  double l3_bytes = 0;
  double memory_bytes = 0;
  std::vector<Gpu> gpus;
  std::string compiler;
  std::string version;  // of rung: ceilings measured by other code are not comparable
  std::string date;     // of the measurement

  /// Noise of the measurement: the median over all rates of a CPU of (median time / least time -
  /// 1).
  double noise = 0;
  std::vector<ArithmeticRate> arithmetic;
  std::vector<BandwidthRate> bandwidth;
  /// Latencies and atomics, of the GPUs too, are measured by measure_latencies() alone.
  std::vector<LatencyRate> latencies;
  std::vector<AtomicRate> atomics;

  /// Returns whether something else ran while it was measured, so that its rates may be too low.
  [[nodiscard]] bool noisy() const { return noise > max_noise; }
  static constexpr double max_noise = 0.1;
};

/// Returns the properties that need no measurement.
Machine describe_machine();

using MachineProgress = std::function<void(std::string_view)>;
/// Measures every ceiling; a few seconds. `progress` hears what is being measured.
void measure_machine(Machine& machine, const MachineProgress& progress);

/// Measures latencies, atomic additions and the GPUs' links to the host; a few seconds more.
void measure_latencies(Machine& machine, const MachineProgress& progress);

/// The machine with its ceilings: from the cache file when that is of this machine and version,
/// else measured - twice when it was busy the first time - and cached. A noisy() measurement is
/// cached too, as such, but never in place of a quiet one of the same machine. A cache that is
/// damaged or cannot be written is told of on standard error, and is no error.
Machine known_machine(bool refresh, const MachineProgress& progress,
                      void (*measure)(Machine&, const MachineProgress&) = measure_machine);

/// known_machine, with latencies: measured and cached too where they are missing.
Machine known_machine_with_latencies(bool refresh, const MachineProgress& progress);

/// The machine with the ceilings that known_machine would find in its file; nothing where it would
/// measure.
std::optional<Machine> remembered_machine();

/// Returns the path of the file that known_machine() keeps its measurements in.
std::string machine_cache_path();

std::string machine_to_json(const Machine& machine);
/// Throws Error(io) when the text is not what machine_to_json writes.
Machine machine_from_json(const std::string& text);

/// Measurement of a GPU's ceilings; a backend that can do it registers one object, in a file of its
/// own, because it needs the GPU's compiler.
class GpuMeter {
 public:
  /// Fills in the rates of GPU `device`.
  using Measure = void (*)(int device, Gpu& gpu);
  explicit GpuMeter(Measure measure);
};
/// Registers how the latencies, atomics and links of a GPU are measured.
class GpuLatencyMeter {
 public:
  explicit GpuLatencyMeter(GpuMeter::Measure measure);
};

}  // namespace rung::bench
