// SPDX-License-Identifier: Apache-2.0
// Wording what is wrong. Internal to simt/.
#pragma once

#include <cstdint>

#include "rung/simt/block.hpp"
#include "rung/simt/record/recorder.hpp"

namespace rung::simt::record {

/// The running thread accesses memory that it may not.
void report_bad_address(Recorder& recorder, const Step& step, std::uintptr_t address,
                        const Region* region);

/// Returns whether the host's code may write there, far from the nearest memory of the device.
bool is_host_memory(std::uintptr_t address, const Region* nearest);

/// The running thread writes constant memory, if that is what the step does.
void report_constant(Recorder& recorder, const Step& step, const Region& region);

/// Ends the launch where its device may not do that to the memory.
void require_access(Recorder& recorder, const Step& step, const Region& region);

/// One side of a race.
struct Side {
  std::uint16_t site = 0;
  std::uint32_t block = 0;   // its number
  std::uint32_t thread = 0;  // within the block
  bool writes = false;
  bool atomic = false;
  bool copies = false;   // a bulk copy, that is, that the thread has started
  bool pending = false;  // a cp.async of the thread, which it has not waited for
  bool of_many = false;  // one of many readers, of which any may be meant
  bool warps = false;    // several warps of the block have read, the thread as one of them
  bool blocks = false;   // several blocks have read
  [[nodiscard]] bool in_flight() const { return copies || pending; }
};
void report_race(Recorder& recorder, const Request& request, std::uintptr_t address, Side here,
                 Side there);
/// `there` was written by a thread, `here` is a copy or a tensor core that goes by another way.
void report_proxy(Recorder& recorder, const Request& request, Side here, Side there);
void report_uninitialized(Recorder& recorder, const Request& request, std::uintptr_t address,
                          const BlockRecord& block, std::uint32_t thread);

}  // namespace rung::simt::record
