// SPDX-License-Identifier: Apache-2.0
// Determines the memory space of an address, at a step's first access.
#include <link.h>

#include <algorithm>

#include "rung/simt/record/findings.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt::record {
namespace {

/// Thread-local variables of the program, including file-scope shared variables. Only their common
/// extent is known.
struct OwnVariables {
  const void* begin = nullptr;
  std::size_t bytes = 0;
};
int find_own_variables(dl_phdr_info* program, std::size_t, void* found) {
  for (int i = 0; i < program->dlpi_phnum; ++i) {
    if (program->dlpi_phdr[i].p_type != PT_TLS) continue;
    *static_cast<OwnVariables*>(found) = {program->dlpi_tls_data, program->dlpi_phdr[i].p_memsz};
  }
  return 1;  // the first object is the executable
}
const OwnVariables& own_variables() {
  static thread_local const OwnVariables own = [] {
    OwnVariables found;
    dl_iterate_phdr(find_own_variables, &found);
    return found;
  }();
  return own;
}

}  // namespace

void Recorder::place(Step& step, Target& target, std::uintptr_t address, std::uint32_t bytes) {
  const auto set = [&](Where where, const void* begin, std::size_t size) {
    target.where = where;
    step.base = reinterpret_cast<std::uintptr_t>(begin);
    // Units have 32 bits: in larger memory, the step covers a 2^31-byte window around the address.
    constexpr int window = 31;
    const std::uint64_t skipped = (address - step.base) >> window << window;
    step.base += skipped;
    const std::uint64_t room = std::min<std::uint64_t>(size - skipped, std::uint64_t{1} << window);
    step.last_unit = static_cast<std::uint32_t>((room - bytes) >> step.log_size);
    return room >= bytes && fits(step, address, step.site, step.log_size);
  };
  const auto within = [&](const void* begin, std::size_t size) {
    return address - reinterpret_cast<std::uintptr_t>(begin) < size;
  };
  // Null if the thread has ended before its copy lands, which is the access recorded here.
  const Fiber* const stack = thread_->fiber;
  if (stack != nullptr && within(stack->bottom, stack->size) &&
      set(Where::local, stack->bottom, stack->size)) {
    return;
  }
  const OwnVariables& own = own_variables();
  if (own.begin != nullptr && within(own.begin, own.bytes) &&
      set(Where::nowhere, own.begin, own.bytes)) {
    return;
  }
  // blockDim and gridDim, which g++ does not treat as constants.
  if (within(&block_extent, sizeof(block_extent)) || within(&grid_extent, sizeof(grid_extent))) {
    const bool block = within(&block_extent, sizeof(block_extent));
    if (set(Where::nowhere, block ? &block_extent : &grid_extent, sizeof(dim3))) return;
  }
  const Launch& launch = launch_->launch;
  if (within(launch.arguments, launch.argument_bytes) &&
      set(Where::nowhere, launch.arguments, launch.argument_bytes)) {
    return;
  }
  const std::size_t arena = shared_extent(launch);
  for (const auto& block : thread_->block->cluster->blocks) {
    if (!within(block->shared, arena)) continue;
    target.block = block->record.get();
    // Dynamic and static shared memory are separate.
    const std::size_t first = launch.shared_gap_end;
    const std::size_t size = first == 0 ? arena : launch.shared_gap_begin;
    if (within(block->shared, size) && set(Where::shared, block->shared, size)) return;
    if (first != 0 && first < arena && within(block->shared + first, arena - first) &&
        set(Where::shared, block->shared + first, arena - first)) {
      return;
    }
  }
  const void* const pointer = reinterpret_cast<const void*>(address);
  Region* region = last_region_;
  if (region == nullptr || !within(region->inner(), region->inner_bytes())) {
    region = find_region(pointer);
  }
  if (region != nullptr && region->state != Region::State::freed) {
    last_region_ = region;
    target.region = region;
    const bool constant = region->memory.space == Space::constant;
    if (!is_read(step.access) && step.access != Access::texture) written_.insert(region);
    if (checking_ && step.access < Access::marker) require_access(*this, step, *region);
    // Units are multiples of the access's size, so that the first one is aligned to it.
    const std::uintptr_t inner = reinterpret_cast<std::uintptr_t>(region->inner());
    const std::uintptr_t skipped = -inner % bytes;
    const auto* const first = region->inner() + skipped;
    if (region->inner_bytes() >= skipped && within(first, region->inner_bytes() - skipped) &&
        set(constant ? Where::constant : Where::global, first, region->inner_bytes() - skipped)) {
      if (checking_ && !region->shadow && !constant) shadow_of(*region);
      if (checking_ && constant) report_constant(*this, step, *region);
      if (counting_ && !constant) target.coverage = &launch_->coverage_of(*region);
      return;
    }
  }
  // Out of bounds or unknown: the step matches no later access, so that each later access is looked
  // up.
  target.where = Where::nowhere;
  step.base = address;
  step.last_unit = 0;
  if (checking_ && step.access < Access::marker) {
    report_bad_address(*this, step, address, region);
  }
}

}  // namespace rung::simt::record
