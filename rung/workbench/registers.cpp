// SPDX-License-Identifier: Apache-2.0
// Matches a kernel of the simulated GPU to nvcc's kernel: the names are equal except for the
// namespace RUNG_TARGET.
#include "rung/workbench/registers.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <map>
#include <memory>

namespace rung::workbench {
namespace {

/// Returns the kernel's name on the simulated GPU.
std::string name_of(const KernelUsage& usage) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(usage.name, nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 ? demangled.get() : usage.name;
  constexpr std::string_view chip = "::nvcc_target::", simulated = "::simt_target::";
  for (std::size_t at; (at = name.find(chip)) != std::string::npos;) {
    name.replace(at, chip.size(), simulated);
  }
  return name;
}

}  // namespace

const KernelUsage* find_usage(const std::string& kernel, int capability) {
  static const auto all = [] {
    std::multimap<std::string, const KernelUsage*> by_name;
    for (const KernelUsage& usage : kernel_usage()) by_name.emplace(name_of(usage), &usage);
    return by_name;
  }();
  const KernelUsage* best = nullptr;
  const auto [first, end] = all.equal_range(kernel);
  for (auto at = first; at != end; ++at) {
    const KernelUsage* const one = at->second;
    const bool runs = capability == 0 || one->capability <= capability;
    if (runs && (best == nullptr || one->capability > best->capability)) best = one;
  }
  return best;
}

}  // namespace rung::workbench
