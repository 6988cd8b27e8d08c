// SPDX-License-Identifier: Apache-2.0
// Texts of findings. Internal to simt/.
#pragma once

#include <cstdint>

#include "rung/simt/block.hpp"
#include "rung/simt/record/recorder.hpp"

namespace rung::simt::record {

/// Reports an out-of-bounds access by the running thread.
void report_bad_address(Recorder& recorder, const Step& step, std::uintptr_t address,
                        const Region* region);

/// Returns true if host code may write to the address and it is far from the nearest device memory.
bool is_host_memory(std::uintptr_t address, const Region* nearest);

/// Reports the running thread's access as a write to constant memory, if it is a write.
void report_constant(Recorder& recorder, const Step& step, const Region& region);

/// Fails the launch if its device may not access the memory with this step's kind of access.
void require_access(Recorder& recorder, const Step& step, const Region& region);

/// One side of a race.
struct Side {
  std::uint16_t site = 0;
  std::uint32_t block = 0;   // block number
  std::uint32_t thread = 0;  // index in the block
  bool writes = false;
  bool atomic = false;
  bool copies = false;   // a bulk copy issued by the thread
  bool pending = false;  // a cp.async of the thread that it has not waited for
  bool of_many = false;  // one of many readers, whose racing thread is unknown
  bool warps = false;    // several warps of the block have read, including this thread's
  bool blocks = false;   // several blocks have read
  [[nodiscard]] bool in_flight() const { return copies || pending; }
};
void report_race(Recorder& recorder, const Request& request, std::uintptr_t address, Side here,
                 Side there);
/// Reports a missing proxy fence: a thread wrote `there`, and `here` reads or writes it through the
/// asynchronous proxy.
void report_proxy(Recorder& recorder, const Request& request, Side here, Side there);
void report_uninitialized(Recorder& recorder, const Request& request, std::uintptr_t address,
                          const BlockRecord& block, std::uint32_t thread);

}  // namespace rung::simt::record
