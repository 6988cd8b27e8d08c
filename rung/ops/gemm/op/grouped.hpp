// SPDX-License-Identifier: Apache-2.0
// Kernels that make all products of a list in one launch: how they make themselves known to
// gemm_grouped(). Internal to gemm.
#pragma once

#include <span>
#include <string_view>

#include "rung/ops/gemm/op/gemm.hpp"

namespace rung {

struct GroupedKernel {
  std::string_view name;
  Backend backend;
  Support (*supports)(const Gemm::Args&, const Context&);
  /// Returns the time that a product adds to a list that fills the device.
  double (*seconds)(const Gemm::Args&, const Context&);
  /// Computes products that have one type of operands, one of results, and the same options.
  void (*run)(std::span<const Gemm::Args>, Context&);
  const GroupedKernel* next = nullptr;

  /// Adds itself to the list, before main().
  GroupedKernel(std::string_view kernel, Backend where,
                Support (*takes)(const Gemm::Args&, const Context&),
                double (*time)(const Gemm::Args&, const Context&),
                void (*make)(std::span<const Gemm::Args>, Context&));
  GroupedKernel(const GroupedKernel&) = delete;
  GroupedKernel& operator=(const GroupedKernel&) = delete;
};

}  // namespace rung
