// SPDX-License-Identifier: Apache-2.0
// Findings about unordered work: the bytes, the two calls by the host, and the call that would
// order them.
#include <cstdlib>
#include <utility>

#include "rung/emulate/runtime/advise.hpp"
#include "rung/emulate/runtime/stream_order.hpp"
#include "rung/simt/record.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;
using record::Finding;
using record::Kind;

struct SourcePlace {
  std::string file;
  int line = 0;
};
SourcePlace split(const std::string& where) {
  const std::size_t colon = where.rfind(':');
  if (colon == std::string::npos) return {};
  return {record::shown_path(where.substr(0, colon)), std::atoi(where.c_str() + colon + 1)};
}

std::string line_of(const SourcePlace& place) {
  return place.line == 0 ? "it" : "line " + std::to_string(place.line);
}

/// Formats an operation: "cudaMemcpyAsync in the default stream".
std::string name_of(const StreamWork& work) {
  std::string text = work.call.name.empty() ? "work" : work.call.name;
  if (work.host_code) text = "the function of " + text;
  return text + " in " + work.stream;
}

/// Describes the byte at `address`, if possible by the kernel argument that points to its memory.
void describe(Finding& finding, std::uintptr_t address, const StreamWork* work) {
  const auto* const byte = reinterpret_cast<const char*>(address);
  const record::Memory memory = record::find_memory(byte);
  const auto offset = byte - static_cast<const char*>(memory.begin);
  std::string allocated;
  if (memory.code != nullptr && memory.name.starts_with("cuda")) {
    const std::string where = simt::source_line(static_cast<const char*>(memory.code) - 1);
    if (!where.empty()) allocated = memory.name + "'ed at " + where;
  }
  finding.object_text =
      memory.bytes == 0 ? "memory"
                        : "byte " + std::to_string(offset) + " of " + std::to_string(memory.bytes) +
                              " bytes " + (allocated.empty() ? "of " + memory.name : allocated);
  if (work == nullptr || memory.bytes == 0) return;
  record::Object& object = finding.object;
  for (std::size_t i = 0; i < work->arguments.size(); ++i) {
    const Argument& one = work->arguments[i];
    if (one.type == nullptr) continue;
    const auto begin =
        static_cast<const char*>(one.pointer) - static_cast<const char*>(memory.begin);
    const bool inside = begin >= 0 && static_cast<std::size_t>(begin) < memory.bytes;
    if (!inside || one.pointer > static_cast<const void*>(byte)) continue;
    object.parameter = static_cast<int>(i);
    object.type = one.type;
    object.element_bytes = one.element_bytes;
    object.offset = offset - begin;
    object.bytes = memory.bytes - static_cast<std::size_t>(begin);
    object.allocated = allocated;
    finding.kernel = work->kernel;
    return;
  }
}

const char* verb(bool writes) { return writes ? "writes " : "reads "; }
const char* past(bool writes) { return writes ? "written" : "read"; }

/// Returns the call with which the host would wait for the work.
std::string host_wait(const StreamWork& work) {
  if (work.default_stream) return "cudaStreamSynchronize(0)";
  if (work.in_graph) return "cudaStreamSynchronize for the graph's stream";
  return "cudaStreamSynchronize for that stream";
}

std::string order_of(const StreamWork& earlier, const StreamWork& later, const SourcePlace& first,
                     const SourcePlace& second) {
  if (!later.vain_wait.empty()) return later.vain_wait + "; record it before that call";
  if (earlier.in_graph && later.in_graph) {
    return "make one depend on the other: by cudaGraphAddDependencies, or in a capture by "
           "cudaEventRecord behind " +
           line_of(first) + " and cudaStreamWaitEvent before " + line_of(second);
  }
  if (earlier.from_pageable && earlier.default_stream) {
    return "call cudaStreamSynchronize(cudaStreamLegacy) behind " + line_of(first) + ": " +
           earlier.call.name +
           " from pageable memory returns when that has been read, and the bytes land later; a "
           "stream made with cudaStreamNonBlocking does not wait for the default stream. Or copy "
           "by cudaMemcpyAsync in the stream of " +
           line_of(second);
  }
  if (earlier.default_stream) {
    return "call cudaStreamSynchronize(0) behind " + line_of(first) +
           ", or do both in one stream: a stream made with cudaStreamNonBlocking does not wait for "
           "the default stream";
  }
  return "call cudaEventRecord behind " + line_of(first) + " and cudaStreamWaitEvent before " +
         line_of(second) + ", or cudaStreamSynchronize between the two" +
         (later.default_stream ? ": the default stream does not wait for a stream made with "
                                 "cudaStreamNonBlocking"
                               : "");
}

/// Returns a finding at location `second` with the other location `first`.
Finding found_between(const SourcePlace& first, const SourcePlace& second) {
  Finding finding;
  finding.kind = Kind::stream_order;
  finding.file = finding.launch_file = second.file;
  finding.line = finding.launch_line = second.line;
  finding.other_file = first.file;
  finding.other_line = first.line;
  return finding;
}

}  // namespace

std::string place_of(const ProgramCall& call) {
  std::string place;
  for (const void* const code : call.code) {
    if (code == nullptr) break;
    std::string line = simt::source_line(static_cast<const char*>(code) - 1);
    // For a template in rung's headers, reports the program's call of the template.
    const bool ours = line.find("rung/emulate/include/") != std::string::npos;
    if (place.empty() || !ours) place = std::move(line);
    if (!ours) break;
  }
  if (!place.empty() || call.line == 0) return place;
  return std::string(call.file) + ":" + std::to_string(call.line);
}

void report_unordered(const StreamWork& earlier, const StreamWork& later, std::uintptr_t address,
                      bool earlier_writes, bool later_writes) {
  const SourcePlace first = split(place_of(earlier.call)), second = split(place_of(later.call));
  Finding finding = found_between(first, second);
  describe(finding, address, later.arguments.empty() ? &earlier : &later);
  finding.message = name_of(later) + " " + verb(later_writes) + finding.object_text +
                    ", which is " + past(earlier_writes) + " by " + name_of(earlier) +
                    ": nothing orders the two";
  finding.advice = order_of(earlier, later, first, second);
  record::add(std::move(finding));
}

void report_host_too_early(const StreamWork& earlier, std::uintptr_t address, bool earlier_writes,
                           bool writes, const void* behind, const std::string& vain_wait) {
  const SourcePlace first = split(place_of(earlier.call));
  const SourcePlace second = split(simt::source_line(static_cast<const char*>(behind) - 1));
  Finding finding = found_between(first, second);
  describe(finding, address, &earlier);
  finding.message = std::string("the host ") + verb(writes) + finding.object_text + ", which is " +
                    past(earlier_writes) + " by " + name_of(earlier) +
                    ": the host has not waited for that";
  finding.advice = (vain_wait.empty() ? "" : vain_wait + "; ") + "call " + host_wait(earlier) +
                   " before " + line_of(second);
  record::add(std::move(finding));
}

void report_freed_in_flight(const StreamWork& earlier, std::uintptr_t address,
                            const ProgramCall& call) {
  const SourcePlace first = split(place_of(earlier.call)), second = split(place_of(call));
  Finding finding = found_between(first, second);
  describe(finding, address, &earlier);
  finding.message = call.name + " frees " + finding.object_text + ", which is in use by " +
                    name_of(earlier) + ": the host has not waited for that";
  finding.advice = "call " + host_wait(earlier) + " before " + line_of(second);
  record::add(std::move(finding));
}

void report_unrecorded_event(const ProgramCall& wait) {
  const SourcePlace place = split(place_of(wait));
  Finding finding;
  finding.kind = Kind::stream_order;
  finding.file = place.file;
  finding.line = place.line;
  finding.message = wait.name + " waits for an event that is never recorded: it waits for nothing";
  finding.advice = "call cudaEventRecord for the event, behind the work to be waited for";
  record::add(std::move(finding));
}

}  // namespace rung::cuda
