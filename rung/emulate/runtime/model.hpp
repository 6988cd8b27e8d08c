// SPDX-License-Identifier: Apache-2.0
// Model of the simulated device: a common GPU for each compute capability.
#pragma once

#include <cstddef>

#include "rung/simt/record.hpp"

namespace rung::cuda {

struct Model {
  int capability;  // compute capability: 90 for 9.0
  const char* name;
  int multiprocessors;
  int threads_per_multiprocessor;
  int blocks_per_multiprocessor;
  std::size_t shared_per_multiprocessor;
  // Maximum shared memory per block, which a kernel gets by cudaFuncSetAttribute; the default limit
  // is 48 KiB.
  std::size_t shared_per_block;
  std::size_t l2_bytes;
  int clock_khz;
  int memory_clock_khz;
  int bus_bits;
  std::size_t memory_bytes;
};

/// Returns the model selected by --compute-capability; the H200 by default.
const Model& model();

/// Returns the model's cache sizes, for counters.
simt::record::Chip modeled_caches();

inline constexpr std::size_t shared_without_asking = 48 << 10;
inline constexpr int registers_per_multiprocessor = 65536;
/// Registers per thread that the runtime reports for kernels. Kernels are compiled for a CPU, so
/// nvcc's register count is unknown; this value permits every block size.
inline constexpr int registers_assumed = 32;

}  // namespace rung::cuda
