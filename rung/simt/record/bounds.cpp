// SPDX-License-Identifier: Apache-2.0
// Indices outside an array's type. The compiler checks each access to an array of known extent
// (-fsanitize=bounds) and calls rung_simt_bad_index() on a violation; the next access then
// identifies the memory.
#include "rung/simt/record/finding_text.hpp"
#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::simt::record {
namespace {

bool within(const void* begin, std::size_t bytes, std::uintptr_t address) {
  return address - reinterpret_cast<std::uintptr_t>(begin) < bytes;
}

}  // namespace

void Recorder::suspect(const char* file, int line, const char* array, long long index) {
  if (!checking_) return;
  leave();
  suspicion_ = {thread_, file, "index " + std::to_string(index) + " of an array of type " + array,
                line};
  // Forces the next access onto the slow path and into settle(), even if it is to the thread's own
  // memory.
  tracer.last = no_list();
  tracer.stack_bytes = 0;
}

void Recorder::settle(std::uintptr_t address) {
  Finding finding;
  const Thread& thread = *thread_;
  if (within(thread.block->shared, shared_room(launch_->launch), address)) {
    finding.space = Space::shared;
  } else if (within(thread.fiber->bottom, thread.fiber->size, address)) {
    finding.space = Space::local;
  } else if (const Region* region = find_region(reinterpret_cast<const void*>(address))) {
    finding.space = region->memory.space;
  }
  finding.kind = Kind::out_of_bounds;
  name_object(launch_->launch, finding, address, nullptr, *thread.block);
  finding.object = {};  // the index addresses another object
  finding.object_text.clear();
  finding.kernel = kernel_name(launch_->launch);
  finding.file = std::move(suspicion_.file);
  finding.line = suspicion_.line;
  finding.block = thread.block->index;
  finding.thread = thread.index;
  finding.message = std::move(suspicion_.message);
  finding.advice = "compare the index with the size before the access";
  add(std::move(finding));
  suspicion_ = {};
  show(thread);
}

}  // namespace rung::simt::record

extern "C" RUNG_API void rung_simt_bad_index(const char* file, int line, const char* array,
                                             long long index) {
  using namespace rung::simt;
  if (record::tracer.last != nullptr) {
    this_worker->recorder()->suspect(file, line, array, index);
  }
}
