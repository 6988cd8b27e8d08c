// SPDX-License-Identifier: Apache-2.0
// The GPU that the simulated device claims to be: a well-known one of each compute capability.
#pragma once

#include <cstddef>

#include "rung/simt/record.hpp"

namespace rung::cuda {

struct Model {
  int capability;  // 90 for 9.0
  const char* name;
  int multiprocessors;
  int threads_per_multiprocessor;
  int blocks_per_multiprocessor;
  std::size_t shared_per_multiprocessor;
  std::size_t shared_per_block;  // with cudaFuncSetAttribute; without it 48 KiB
  std::size_t l2_bytes;
  int clock_khz;
  int memory_clock_khz;
  int bus_bits;
  std::size_t memory_bytes;
};

/// Returns the model of --compute-capability; an H200 by default.
const Model& model();

/// Returns the sizes of its caches, for the counters.
simt::record::Chip modeled_caches();

inline constexpr std::size_t shared_without_asking = 48 << 10;
inline constexpr int registers_per_multiprocessor = 65536;
/// The number of registers per thread. Kernels are compiled for a CPU, so that nvcc's number is not
/// known; this one fits any block.
inline constexpr int registers_assumed = 32;

}  // namespace rung::cuda
