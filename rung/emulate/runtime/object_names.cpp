// SPDX-License-Identifier: Apache-2.0
// Finds the program's name for the memory of a finding, using the launch's arguments.
#include "rung/emulate/runtime/kernels.hpp"
#include "rung/simt/record.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;

/// Formats the origin of an allocation: "cudaMalloc'ed at prog.cu:20".
std::string allocation_of(const record::Memory& memory) {
  if (!memory.name.starts_with("cuda") || memory.code == nullptr) return "";
  const std::string where = simt::source_line(static_cast<const char*>(memory.code) - 1);
  return where.empty() ? "" : memory.name + "'ed at " + where;
}

}  // namespace

void complete_finding(const LaunchConfig& config, const KernelLayout& layout,
                      std::size_t static_begin, const record::Memory* memory,
                      record::Finding& finding) {
  if (!finding.in_library) {
    finding.launch_file = record::shown_path(config.place.file_name());
    finding.launch_line = static_cast<int>(config.place.line());
  }
  record::Object& object = finding.object;
  for (int i = 0; i < LaunchConfig::max_described; ++i) {
    const Argument& one = config.arguments[i];
    if (one.is_integer) finding.integers.emplace_back(i, one.integer);
    if (one.type == nullptr || memory == nullptr || object.parameter >= 0) continue;
    const auto offset =
        static_cast<const char*>(one.pointer) - static_cast<const char*>(memory->begin);
    if (offset < 0 || static_cast<std::size_t>(offset) >= memory->bytes) continue;
    object.parameter = i;
    object.type = one.type;
    object.element_bytes = one.element_bytes;
    object.offset -= offset;
    object.bytes -= static_cast<std::size_t>(offset);
  }
  if (memory != nullptr) {
    object.allocated = allocation_of(*memory);
    return;
  }
  const auto at = static_cast<std::size_t>(object.offset);
  if (at < static_begin) {
    object.dynamic = true;
    object.bytes = config.shared_bytes;
    return;
  }
  SharedName name;
  if (!layout.variable_at(at - static_begin, name)) return;
  object.name = name.name;
  object.type = name.type;
  object.bytes = name.bytes;
  object.offset -= static_cast<std::int64_t>(static_begin + name.begin);
}

}  // namespace rung::cuda
