// SPDX-License-Identifier: Apache-2.0
// Counted figures compared by `rung explain`.
#include "rung/workbench/explain.hpp"

namespace rung::workbench {
namespace {

using simt::record::Distribution;
using simt::record::Kernel;

double number(std::uint64_t count) { return static_cast<double>(count); }
double ratio(std::uint64_t of, std::uint64_t by) { return by == 0 ? 0 : number(of) / number(by); }

constexpr bool is_ratio = true;

}  // namespace

double depth_of(const Kernel& kernel) {
  double steps = 0;
  for (const simt::record::LaunchWork& launch : kernel.each) {
    const double blocks = number(std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z);
    const simt::record::Trips& longest = launch.waits.longest;
    if (blocks > 0) steps += number(longest.barriers + longest.exchanges) / blocks;
  }
  // Only the first launches of a kernel are kept: extrapolate.
  return kernel.each.empty() ? 0 : steps * number(kernel.launches) / number(kernel.each.size());
}

const std::vector<Metric>& metrics() {
  static const std::vector<Metric> all = {
      {"launches", "launches", [](const Kernel& k) { return number(k.launches); }},
      {"blocks", "blocks", [](const Kernel& k) { return number(k.blocks); }},
      {"threads_per_block", "threads per block",
       [](const Kernel& k) { return ratio(k.threads, k.blocks); }},
      {"shared_bytes", "bytes of shared memory per block",
       [](const Kernel& k) { return number(k.shared_bytes); }},
      {"warps", "warps", [](const Kernel& k) { return number(k.warps); }},
      {"divergent_warps", "warps that diverge",
       [](const Kernel& k) { return number(k.divergent_warps); }},
      {"active_lanes", "active lanes per request", [](const Kernel& k) { return k.active_lanes(); },
       is_ratio},
      {"thread_inst_executed_per_inst_executed", "lanes per instruction",
       [](const Kernel& k) { return k.lanes_per_instruction(); }, is_ratio},
      {"barriers", "barriers: warps that came",
       [](const Kernel& k) { return number(k.totals.barriers); }},
      {"depth", "depth: barriers and shuffles", depth_of, is_ratio},
      {"global_load_requests", "global loads: requests",
       [](const Kernel& k) { return number(k.totals.global_load_requests); }},
      {"global_load_sectors", "  sectors of 32 bytes",
       [](const Kernel& k) { return number(k.totals.global_load_sectors); }},
      {"global_load_sectors_per_request", "  sectors per request",
       [](const Kernel& k) {
         return ratio(k.totals.global_load_sectors, k.totals.global_load_requests);
       },
       is_ratio, [](const Kernel& k) -> const Distribution& { return k.waits.load_sectors; }},
      {"global_store_requests", "global stores: requests",
       [](const Kernel& k) { return number(k.totals.global_store_requests); }},
      {"global_store_sectors", "  sectors of 32 bytes",
       [](const Kernel& k) { return number(k.totals.global_store_sectors); }},
      {"global_store_sectors_per_request", "  sectors per request",
       [](const Kernel& k) {
         return ratio(k.totals.global_store_sectors, k.totals.global_store_requests);
       },
       is_ratio},
      {"global_load_efficiency", "  % of loaded bytes used",
       [](const Kernel& k) {
         return 100 * ratio(k.totals.global_load_used_bytes, 32 * k.totals.global_load_sectors);
       },
       is_ratio},
      {"global_store_efficiency", "  % of stored bytes used",
       [](const Kernel& k) {
         return 100 * ratio(k.totals.global_store_used_bytes, 32 * k.totals.global_store_sectors);
       },
       is_ratio},
      {"atomic_rounds", "global atomics: rounds of lanes",
       [](const Kernel& k) { return number(k.totals.atomic_rounds); }},
      {"atomic_requests", "global atomics: requests",
       [](const Kernel& k) { return number(k.totals.atomic_requests); }},
      {"atomic_sectors", "  sectors of 32 bytes",
       [](const Kernel& k) { return number(k.totals.atomic_sectors); }},
      {"shared_load_requests", "shared loads: requests",
       [](const Kernel& k) { return number(k.totals.shared_load_requests); }},
      {"shared_load_wavefronts", "  wavefronts",
       [](const Kernel& k) { return number(k.totals.shared_load_wavefronts); }},
      {"shared_load_wavefronts_per_request", "  wavefronts per request",
       [](const Kernel& k) {
         return ratio(k.totals.shared_load_wavefronts, k.totals.shared_load_requests);
       },
       is_ratio,
       [](const Kernel& k) -> const Distribution& { return k.waits.shared_load_wavefronts; }},
      {"shared_load_conflicts", "  bank conflicts",
       [](const Kernel& k) { return number(k.totals.shared_load_conflicts); }},
      {"shared_store_requests", "shared stores: requests",
       [](const Kernel& k) { return number(k.totals.shared_store_requests); }},
      {"shared_store_wavefronts", "  wavefronts",
       [](const Kernel& k) { return number(k.totals.shared_store_wavefronts); }},
      {"shared_store_conflicts", "  bank conflicts",
       [](const Kernel& k) { return number(k.totals.shared_store_conflicts); }},
      {"shared_atomic_requests", "shared atomics: requests",
       [](const Kernel& k) { return number(k.totals.shared_atomic_requests); }},
      {"shared_atomic_wavefronts", "  wavefronts",
       [](const Kernel& k) { return number(k.totals.shared_atomic_wavefronts); }},
      {"shared_reuse", "shared bytes read per global byte read",
       [](const Kernel& k) { return k.reuse(); }, is_ratio},
      {"bulk_copies", "bulk and tensor copies",
       [](const Kernel& k) { return number(k.totals.bulk_copies); }},
      {"bulk_load_bytes", "  bytes loaded",
       [](const Kernel& k) { return number(k.totals.bulk_load_bytes); }},
      {"bulk_store_bytes", "  bytes stored",
       [](const Kernel& k) { return number(k.totals.bulk_store_bytes); }},
      {"matrix_products", "tensor cores: products",
       [](const Kernel& k) { return number(k.totals.matrix_products); }},
      {"matrix_operations", "  operations",
       [](const Kernel& k) { return number(k.totals.matrix_operations); }},
      {"thread_operations", "operations of all threads",
       [](const Kernel& k) { return number(k.arithmetic.operations()); }},
      {"integer_operations", "  integer",
       [](const Kernel& k) { return number(k.arithmetic.integer); }},
      {"l1_load_hit_rate", "L1 hits, % of loaded sectors",
       [](const Kernel& k) {
         return 100 * ratio(k.totals.l1_load_hits, k.totals.global_load_sectors);
       },
       is_ratio},
      {"l2_hit_rate", "L2 hits, % of sectors",
       [](const Kernel& k) { return 100 * ratio(k.totals.l2_hits, k.totals.l2_sectors); },
       is_ratio},
      {"dram_read_bytes", "memory: bytes read",
       [](const Kernel& k) { return number(k.totals.dram_read_bytes); }},
      {"dram_written_bytes", "  bytes written or dirty in L2",
       [](const Kernel& k) { return number(k.totals.dram_write_bytes + k.dirty_bytes); }},
      {"constant_rounds", "constant memory: rounds of addresses",
       [](const Kernel& k) { return number(k.totals.constant_rounds); }},
      {"constant_requests", "constant memory: requests",
       [](const Kernel& k) { return number(k.totals.constant_requests); }},
  };
  return all;
}

}  // namespace rung::workbench
