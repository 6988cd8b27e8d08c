// SPDX-License-Identifier: Apache-2.0
// Registry of kernels that compute all products of a list in one launch, for gemm_grouped().
// Internal to gemm.
#pragma once

#include <span>
#include <string_view>

#include "rung/ops/gemm/op/gemm.hpp"

namespace rung {

struct GroupedKernel {
  std::string_view name;
  Backend backend;
  Support (*supports)(const Gemm::Args&, const Context&);
  /// Returns the time that a product adds to a list that fills the device, in seconds.
  double (*seconds)(const Gemm::Args&, const Context&);
  /// Computes products that all have the same operand type, result type and options.
  void (*run)(std::span<const Gemm::Args>, Context&);
  const GroupedKernel* next = nullptr;

  /// Adds the kernel to the registry, before main().
  GroupedKernel(std::string_view kernel, Backend where,
                Support (*takes)(const Gemm::Args&, const Context&),
                double (*time)(const Gemm::Args&, const Context&),
                void (*make)(std::span<const Gemm::Args>, Context&));
  GroupedKernel(const GroupedKernel&) = delete;
  GroupedKernel& operator=(const GroupedKernel&) = delete;
};

}  // namespace rung
