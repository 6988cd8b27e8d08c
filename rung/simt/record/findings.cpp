// SPDX-License-Identifier: Apache-2.0
// Text of findings.
#include "rung/simt/record/findings.hpp"
#include <algorithm>

#include <string>

#include "rung/simt/record/finding_text.hpp"
#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/session.hpp"
#include "rung/simt/record/source.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt::record {

bool writes(Access access) {
  return is_plain_write(access) || is_atomic(access) || is_store(access);
}

namespace {

/// Size of the red zone behind an allocation. It holds no data, so that a kernel may continue after
/// accessing it.
constexpr std::size_t harmless = 256;

bool near_before(const void* address, const Region& region) {
  return address < region.inner() &&
         static_cast<const std::byte*>(address) + harmless >= region.begin();
}

}  // namespace

uint3 index_in(const dim3& extent, std::uint32_t linear) {
  return {linear % extent.x, linear / extent.x % extent.y, linear / extent.x / extent.y};
}

Finding describe(Kind kind, Recorder& recorder, const Step& step, Where where, std::uint32_t block,
                 std::uint32_t thread) {
  const Launch& launch = recorder.launch().launch;
  const Source& source = source_of(step.site);
  Finding finding;
  finding.kind = kind;
  finding.space = where == Where::shared     ? Space::shared
                  : where == Where::local    ? Space::local
                  : where == Where::constant ? Space::constant
                                             : Space::global;
  finding.kernel = kernel_name(launch);
  finding.file = source.file;
  finding.line = source.line;
  finding.block = index_in(launch.grid, block);
  finding.thread = index_in(launch.block, thread);
  if (launch_source() == nullptr || launch.data == nullptr) return finding;
  const Source call = launch_source()->library_call(launch.data);
  finding.in_library = call.line != 0;
  finding.launch_file = call.file;
  finding.launch_line = call.line;
  return finding;
}

std::string access_of(const Step& step) {
  const std::string what = is_atomic(step.access) ? "an atomic operation"
                           : writes(step.access)  ? "a write"
                                                  : "a read";
  const int bytes = 1 << step.log_size;
  return what + " of " + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

std::string name_of(const Memory& memory) {
  const std::size_t bytes = memory.bytes - memory.guard_before - memory.guard_behind;
  return std::to_string(bytes) + (bytes == 1 ? " byte of " : " bytes of ") +
         (memory.name.empty() ? "global memory" : memory.name);
}

void name_object(const Launch& launch, Finding& finding, std::uintptr_t address,
                 const Region* region, const Block& block) {
  const void* begin = region != nullptr ? region->inner() : block.shared;
  finding.object.offset =
      static_cast<std::int64_t>(address - reinterpret_cast<std::uintptr_t>(begin));
  finding.object_text = "a word of shared memory";
  if (region != nullptr) {
    finding.object_text =
        "byte " + std::to_string(finding.object.offset) + " of " + name_of(region->memory);
    finding.object.bytes = region->inner_bytes();
  }
  finding.block_extent = launch.block;
  complete(launch.data, region != nullptr ? &region->memory : nullptr, finding);
}

std::uint32_t linear_thread(const Thread& thread) {
  return static_cast<std::uint32_t>(&thread - thread.block->threads.data());
}

namespace {

/// Describes an offset outside shared memory (`extent` bytes), relative to its dynamic or its
/// static part.
std::string place_in_shared(const Launch& launch, std::size_t at, std::size_t extent) {
  const auto into = [](std::size_t offset, std::size_t size, const char* which) {
    return std::to_string(offset) + " bytes into the " + std::to_string(size) + " bytes of " +
           which + "shared memory";
  };
  const std::size_t dynamic_end = launch.shared_gap_begin;
  const std::size_t static_begin = launch.shared_gap_end;
  if (static_begin == 0 || extent <= static_begin) return into(at, extent, "");
  if (at >= static_begin) return into(at - static_begin, extent - static_begin, "static ");
  if (dynamic_end != 0 && 2 * at < dynamic_end + static_begin) {
    return into(at, dynamic_end, "dynamic ");
  }
  return std::to_string(static_begin - at) + " bytes before the block's static shared memory";
}

/// Describes an address outside the block's shared memory. Returns "" if the address is far away,
/// or closer to the given region of global memory.
std::string beside_shared(const Launch& launch, const Thread& thread, std::uintptr_t address,
                          std::size_t size, const Region* region) {
  // A kernel may use dynamic shared memory although its launch provides none.
  std::uintptr_t near = size != 0 ? 64 << 10 : shared_room(launch) != 0 ? 4 << 10 : 0;
  const auto begin = reinterpret_cast<std::uintptr_t>(thread.block->shared);
  if (region != nullptr) {
    const auto first = reinterpret_cast<std::uintptr_t>(region->begin());
    const std::uintptr_t last = first + region->memory.bytes;
    near = std::min(near, address < first ? first - address : address - std::min(last, address));
  }
  if (address >= begin && address - begin < size + near) {
    return place_in_shared(launch, address - begin, size);
  }
  if (address < begin && begin - address < near) {
    return std::to_string(begin - address) + " bytes before the block's shared memory";
  }
  return "";
}

}  // namespace

void report_bad_address(Recorder& recorder, const Step& step, std::uintptr_t address,
                        const Region* region) {
  // Skips the simulator's own functions, which may be instrumented, since the linker keeps one copy
  // of each inline function.
  const Source& source = source_of(step.site);
  if (!source.of_a_kernel) return;
  const std::uint32_t bytes = 1u << step.log_size;
  const Thread& thread = recorder.thread();
  const std::size_t shared_bytes = shared_extent(recorder.launch().launch);
  const void* pointer = reinterpret_cast<const void*>(address);
  const Region* nearest = region == nullptr ? nearest_region(pointer) : region;
  const std::string shared = region == nullptr ? beside_shared(recorder.launch().launch, thread,
                                                               address, shared_bytes, nearest)
                                               : "";
  const auto shared_begin = reinterpret_cast<std::uintptr_t>(thread.block->shared);
  const bool in_shared = address - shared_begin <= shared_bytes - bytes && bytes <= shared_bytes;
  bool harms = false;
  bool of_host = false;
  Kind kind = Kind::out_of_bounds;
  std::string message = access_of(step);
  std::string advice = "compare the index with the size before the access";
  if (region != nullptr && region->state == Region::State::freed) {
    kind = Kind::use_after_free;
    message += " in " + name_of(region->memory) + " that have been freed";
    if (region->memory.freed != nullptr) {
      const std::string where = source_line(static_cast<const char*>(region->memory.freed) - 1);
      if (!where.empty()) message += " at " + where;
    }
    advice = "free memory after the last kernel that uses it";
    harms = true;
  } else if (address % bytes != 0 && (region != nullptr || in_shared)) {
    kind = Kind::misaligned;
    message += " at an address that is no multiple of " + std::to_string(bytes);
    advice = "align the pointer to the size of what is accessed through it, or access less";
  } else if (!shared.empty()) {
    message += " " + shared;
    harms = address - shared_begin > shared_bytes + harmless;
  } else if (is_host_memory(address, nearest)) {
    message += std::string(" of memory of the host, which the GPU cannot ") +
               (writes(step.access) ? "write" : "read");
    advice =
        "pass memory of the device: allocate it by cudaMalloc and copy by cudaMemcpy; arrays on "
        "the stack and those of malloc and new are the host's alone";
    harms = of_host = true;
  } else if (nearest != nullptr && pointer >= nearest->inner()) {
    const auto behind =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(pointer) - nearest->inner());
    const bool within = behind < nearest->inner_bytes();
    message += within ? " that leaves " : " behind ";
    message += name_of(nearest->memory) + ", at byte " + std::to_string(behind);
    harms = pointer >= nearest->end() &&
            static_cast<const std::byte*>(pointer) - nearest->end() > std::ptrdiff_t{harmless};
  } else if (nearest != nullptr && near_before(pointer, *nearest)) {
    message += " " + std::to_string(nearest->inner() - static_cast<const std::byte*>(pointer)) +
               " bytes before " + name_of(nearest->memory);
  } else {
    message += " of what is no memory of the device";
    if (address == 0) message += ": a null pointer";
    advice = "pass kernels pointers to device memory";
    harms = true;
  }
  Finding finding = describe(kind, recorder, step, Where::global, thread.block->record->number,
                             linear_thread(thread));
  if (!shared.empty() || in_shared) finding.space = Space::shared;
  // Host addresses are unrelated to device arrays.
  const Region* const about = shared.empty() && !of_host ? nearest : nullptr;
  if (about != nullptr || finding.space == Space::shared) {
    name_object(recorder.launch().launch, finding, address, about, *thread.block);
  }
  if (about != nullptr) {
    const Source allocated = source_of(about->memory);
    finding.other_file = allocated.file;
    finding.other_line = allocated.line;
  }
  finding.object_text = message.substr(access_of(step).size());
  finding.message = message;
  finding.advice = advice;
  if (recorder.is_news(kind, step.site_index, 0)) add(std::move(finding));
  if (!harms) return;
  std::string why = "illegal address: " + message;
  if (source.line != 0) why += "\n  at " + source.file + ":" + std::to_string(source.line);
  {  // abandon() does not destroy objects on the fiber's stack
    // NOLINTNEXTLINE(bugprone-unused-local-non-trivial-variable)
    const std::string gone = std::move(message) + std::move(advice);
  }
  recorder.worker().fail(std::move(why), Place{});
}

void report_uninitialized(Recorder& recorder, const Request& request, std::uintptr_t address,
                          const BlockRecord& block, std::uint32_t thread) {
  if (!recorder.is_news(Kind::uninitialized, request.step.site_index, 0)) return;
  Finding finding = describe(Kind::uninitialized, recorder, request.step, request.target.where,
                             block.number, thread);
  const Region* const region = request.target.region;
  name_object(recorder.launch().launch, finding, address, region,
              region != nullptr ? *block.block : *request.target.block->block);
  finding.message = access_of(request.step) + " that no thread has written: " + finding.object_text;
  if (region != nullptr) {
    const Source allocated = source_of(region->memory);
    finding.other_file = allocated.file;
    finding.other_line = allocated.line;
  }
  const bool is_on_chip =
      request.target.where == Where::shared || request.target.where == Where::local;
  finding.advice = is_on_chip ? "let a thread of the block write it before it is read"
                              : "write it, or copy or set it from the host, before it is read";
  add(std::move(finding));
}

void Recorder::parted(const Thread& first, std::uint32_t gone, const Place& elsewhere) {
  Step step;
  step.site = site_of(first.place);
  step.site_index = site_index(step.site);
  const std::uint16_t other = site_index(site_of(elsewhere));
  if (!is_news(Kind::warp_sync, step.site_index, other)) return;
  Finding finding = describe(Kind::warp_sync, *this, step, Where::shared,
                             first.block->record->number, linear_thread(first));
  const Source& source = source_of(site_of(elsewhere));
  finding.other_file = source.file;
  finding.other_line = source.line;
  std::string lanes;
  for (std::uint32_t left = gone; left != 0; left &= left - 1) {
    lanes += (lanes.empty() ? "" : ", ") + std::to_string(__builtin_ctz(left));
  }
  finding.message = std::string(first.operation) + " without lanes " + lanes +
                    " of its mask: they were here when this lane and others met them in " +
                    "another call";
  finding.advice =
      "name in a mask only lanes that come to this call: __ballot_sync() before the "
      "branch tells which do";
  add(std::move(finding));
}

void Recorder::split(const Thread& first, const Thread& other) {
  Step step;
  step.site = site_of(first.place);
  step.site_index = site_index(step.site);
  const std::uintptr_t elsewhere = site_of(other.place);
  if (!is_news(Kind::barrier, step.site_index, site_index(elsewhere))) return;
  Finding finding = describe(Kind::barrier, *this, step, Where::shared, first.block->record->number,
                             linear_thread(first));
  const Source& source = source_of(elsewhere);
  finding.other_file = source.file;
  finding.other_line = source.line;
  finding.other_block = finding.block;
  finding.other_thread = other.index;
  const auto warp = std::to_string(first.warp - first.block->warps.data());
  finding.message = "lanes of warp " + warp + " wait at two calls of " + first.operation +
                    "(), which CUDA leaves undefined: hardware since Volta counts arrivals per " +
                    "thread, so that the launch usually goes on, as it does here";
  finding.advice = "let all lanes come to one call: move the barrier behind the branches";
  add(std::move(finding));
}

}  // namespace rung::simt::record
