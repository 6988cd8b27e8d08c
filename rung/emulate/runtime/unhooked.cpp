// SPDX-License-Identifier: Apache-2.0
// Table of functions that exist in two versions, filled before main() by the program's files
// (rung/emulate/unhooked.cpp).
#include "rung/emulate/runtime/unhooked.hpp"

#include <mutex>
#include <unordered_map>

namespace rung::cuda {
namespace {

struct Versions {
  std::mutex mutex;  // libraries may be loaded later
  std::unordered_map<const void*, const void*> unhooked;
};
Versions& versions() {
  static Versions& one = *new Versions;
  return one;
}

}  // namespace

KernelCall without_hooks(KernelCall call) {
  const std::lock_guard lock(versions().mutex);
  const auto found = versions().unhooked.find(reinterpret_cast<const void*>(call));
  return found == versions().unhooked.end()
             ? call
             : reinterpret_cast<KernelCall>(const_cast<void*>(found->second));
}

}  // namespace rung::cuda

extern "C" __attribute__((visibility("default"))) void rung_emulate_unhooked(
    const void* const* begin, const void* const* end) {
  using rung::cuda::versions;
  const std::lock_guard lock(versions().mutex);
  for (; begin != end; begin += 2) versions().unhooked.emplace(begin[0], begin[1]);
}
