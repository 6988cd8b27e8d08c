// SPDX-License-Identifier: Apache-2.0
// Reports accesses to registered memory that the kernel has no permission for.
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <utility>

#include "rung/simt/record/finding_text.hpp"
#include "rung/simt/record/findings.hpp"
#include "rung/simt/record/source.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt::record {

void report_constant(Recorder& recorder, const Step& step, const Region& region) {
  if (!writes(step.access) || !recorder.is_news(Kind::read_only, step.site_index, 0)) return;
  const Thread& thread = recorder.thread();
  Finding finding = describe(Kind::read_only, recorder, step, Where::constant,
                             thread.block->record->number, linear_thread(thread));
  finding.message = access_of(step) + " to " + region.memory.name + ", which kernels may only read";
  finding.advice = "write it from the host (cudaMemcpyToSymbol), or make it a __device__ variable";
  add(std::move(finding));
}

bool is_host_memory(std::uintptr_t address, const Region* nearest) {
  constexpr std::uintptr_t far = 64 << 10;
  if (nearest != nullptr) {
    const auto first = reinterpret_cast<std::uintptr_t>(nearest->begin());
    const std::uintptr_t last = first + nearest->memory.bytes;
    if (address < last ? address + far >= first : address - last < far) return false;
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                             &std::fclose);
  if (maps == nullptr) return false;
  // Format: "begin-end rw-p ...".
  char line[512];
  while (std::fgets(line, sizeof line, maps.get()) != nullptr) {
    std::uintptr_t begin = 0, end = 0;
    char access[5] = {};
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, access) != 3) continue;
    if (address >= begin && address < end) return access[1] == 'w';
  }
  return false;
}

namespace {

/// Reports the access and returns the message of the launch's failure.
std::string tell_denied(Recorder& recorder, const Step& step, const Memory& memory, bool reads) {
  const Thread& thread = recorder.thread();
  const Kind kind = reads ? Kind::read_only : Kind::out_of_bounds;
  Finding finding = describe(kind, recorder, step, Where::global, thread.block->record->number,
                             linear_thread(thread));
  const Source allocated = source_of(memory);
  finding.other_file = allocated.file;
  finding.other_line = allocated.line;
  finding.message = access_of(step) + " in " + name_of(memory) + ", which device " +
                    std::to_string(recorder.launch().launch.device) +
                    (reads ? " may only read" : " may not access");
  finding.advice =
      "allow it before the launch: cudaDeviceEnablePeerAccess for another device's memory, "
      "cuMemSetAccess for mapped memory, cudaMemPoolSetAccess for a pool's";
  std::string why = "illegal address: " + finding.message;
  if (finding.line != 0) why += "\n  at " + finding.file + ":" + std::to_string(finding.line);
  if (recorder.is_news(kind, step.site_index, 0)) add(std::move(finding));
  return why;
}

}  // namespace

void require_access(Recorder& recorder, const Step& step, const Region& region) {
  const Memory& memory = region.memory;
  const int device = recorder.launch().launch.device;
  const auto allowed = [&](std::uint64_t devices) { return (devices >> device & 1) != 0; };
  if (allowed(writes(step.access) ? memory.writers : memory.readers)) return;
  if (!source_of(step.site).of_a_kernel) return;  // the simulator's own functions are exempt
  recorder.worker().fail(tell_denied(recorder, step, memory, allowed(memory.readers)), Place{});
}

}  // namespace rung::simt::record
