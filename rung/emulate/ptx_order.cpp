// SPDX-License-Identifier: Apache-2.0
// Translates the memory order and scope of PTX instructions for the simulator.
#include "rung/emulate/ptx_order.hpp"

#include <fmt/format.h>

#include "rung/emulate/ptx_translator.hpp"

namespace rung::emulate {
namespace {

std::string scope_of(const Instruction& one) {
  return fmt::format("::rung::simt::AtomicScope::{}", one.has("cta") ? "block" : "device");
}

}  // namespace

std::string strong_access(const Instruction& one) {
  const char* order = nullptr;
  if (one.has("volatile") || one.has("mmio")) order = "unstated";
  if (one.has("relaxed")) order = "relaxed";
  if (one.has("acquire") || one.has("release")) order = "ordered";
  if (order == nullptr) return "";
  return fmt::format("{}, ::rung::simt::MemoryOrder::{}, {}", here, order, scope_of(one));
}

std::string atomic_order(const Instruction& one) {
  const char* order = "::rung::simt::unstated_order";  // else: a value of std::memory_order
  if (one.has("relaxed")) order = "0";
  if (one.has("acquire")) order = "2";
  if (one.has("release")) order = "3";
  if (one.has("acq_rel")) order = "4";
  return fmt::format("{}, {}, {}", here, scope_of(one), order);
}

}  // namespace rung::emulate
