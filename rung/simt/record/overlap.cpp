// SPDX-License-Identifier: Apache-2.0
// Detects overlapping `__restrict__` parameters.
#include "rung/simt/record/overlap.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <utility>

#include "rung/simt/record/finding_text.hpp"
#include "rung/simt/record/registry.hpp"
#include "rung/simt/record/session.hpp"
#include "rung/simt/record/source.hpp"

namespace rung::simt::record {

void Overlaps::begin(const void* data) {
  const LaunchSource* const source = launch_source();
  suspects_.clear();
  sites_.clear();
  data_ = data;
  if (source != nullptr && data != nullptr) suspects_ = source->shared_memory(data);
}

void Overlaps::note(Request& request) {
  const Step& step = request.step;
  const bool reads = is_read(step.access);
  if (request.target.where != Where::global || (!reads && !writes(step.access))) return;
  const void* const memory = request.target.region->begin();
  if (std::find(suspects_.begin(), suspects_.end(), memory) == suspects_.end()) return;
  const auto [at, fresh] = sites_.try_emplace(step.site);
  SiteAccesses& accesses = at->second;
  if (fresh) {
    accesses.writes = !reads;
    accesses.parameter =
        launch_source()->parameter_of(data_, source_of(step.site), accesses.writes);
  }
  if (accesses.parameter.number < 0) return;
  request.spread();
  for (std::uint32_t left = request.lanes; left != 0; left &= left - 1) {
    const std::uint32_t unit = request.units[std::countr_zero(left)];
    const std::uintptr_t address = step.base + (std::uintptr_t{unit} << step.log_size);
    // Aligned accesses do not cross a 64-bit word of the bitmap.
    const std::uint64_t bits = (std::uint64_t{1} << (1u << step.log_size)) - 1;
    accesses.pages[address / page_bytes][address % page_bytes / 64] |= bits << address % 64;
  }
}

void Overlaps::add(const Overlaps& other) {
  for (const auto& [site, accesses] : other.sites_) {
    if (accesses.parameter.number < 0) continue;
    SiteAccesses& mine =
        sites_.try_emplace(site, SiteAccesses{accesses.parameter, accesses.writes, {}})
            .first->second;
    for (const auto& [number, page] : accesses.pages) {
      Page& bits = mine.pages[number];
      for (std::size_t i = 0; i < page.size(); ++i) bits[i] |= page[i];
    }
  }
}

/// Returns the first byte that both locations have accessed; 0 if there is none.
std::uintptr_t Overlaps::common_byte(const SiteAccesses& one, const SiteAccesses& other) {
  std::uintptr_t first = ~std::uintptr_t{0};
  for (const auto& [number, page] : one.pages) {
    const auto same = other.pages.find(number);
    if (same == other.pages.end()) continue;
    for (std::size_t i = 0; i < page.size(); ++i) {
      const std::uint64_t both = page[i] & same->second[i];
      if (both == 0) continue;
      const std::uintptr_t byte =
          number * page_bytes + 64 * i + static_cast<std::uintptr_t>(std::countr_zero(both));
      first = std::min(first, byte);
      break;
    }
  }
  return first == ~std::uintptr_t{0} ? 0 : first;
}

void Overlaps::report(const Launch& launch) const {
  std::set<std::pair<int, int>> told;
  for (const auto& [writing_site, written] : sites_) {
    if (!written.writes) continue;
    for (const auto& [site, other] : sites_) {
      const auto parameters = std::minmax(written.parameter.number, other.parameter.number);
      if (parameters.first == parameters.second || told.contains(parameters)) continue;
      const std::uintptr_t byte = common_byte(written, other);
      if (byte == 0) continue;
      told.insert(parameters);
      const auto offset = static_cast<std::int64_t>(
          byte - reinterpret_cast<std::uintptr_t>(other.parameter.pointer));
      const auto size = static_cast<std::int64_t>(other.parameter.element_bytes);
      const std::string element =
          size == 0 ? "byte " + std::to_string(offset) + " of " + other.parameter.name
                    : other.parameter.name + "[" + std::to_string(offset / size) + "]";
      Finding finding;
      finding.kind = Kind::overlap;
      finding.kernel = kernel_name(launch);
      finding.file = source_of(site).file;
      finding.line = source_of(site).line;
      finding.other_file = source_of(writing_site).file;
      finding.other_line = source_of(writing_site).line;
      finding.message =
          other.parameter.name + " and " + written.parameter.name +
          " are __restrict__, but the launch passes memory that overlaps: " + element + " is " +
          (other.writes ? "written" : "read") + " here, and written through " +
          written.parameter.name;
      finding.advice =
          "pass memory that does not overlap, or declare these parameters without __restrict__";
      record::add(std::move(finding));
    }
  }
}

}  // namespace rung::simt::record
