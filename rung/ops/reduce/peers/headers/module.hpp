// SPDX-License-Identifier: Apache-2.0
// C interface of librung_peer_reduce_*.so, which the peers std, tbb and eigen of reduce load.
//
// All three are header libraries, whose instructions are chosen at compile time: each instruction
// set is a module of its own, with all other names hidden.
#pragma once

#include <cstdint>

namespace rung::peer_reduce {

enum class Library : int { std, tbb, eigen };
enum class Operation : int { sum, product, min, max, mean, norm };

/// Arguments: y[outer][inner] from x[outer][length][inner], both contiguous, f32 or f64.
struct ReducePeerArguments {
  Library library;
  Operation operation;
  bool is_f64;
  const void* x;
  void* y;
  std::int64_t outer, length, inner;
  int threads;
};

/// Type of rung_reduce_peer, extern "C", which returns false if the library runs out of memory.
using Run = bool(const ReducePeerArguments* call);
/// Type of rung_reduce_peer_version, extern "C", which returns 30400 for 3.4.0.
using Version = int(Library library);

}  // namespace rung::peer_reduce
