// SPDX-License-Identifier: Apache-2.0
// Computes the least time of an emulated kernel on a GPU from its counters.
#include "rung/workbench/emulate_bound.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rung/bench/bound.hpp"
#include "rung/bench/roofline.hpp"
#include "rung/workbench/explain.hpp"

namespace rung::workbench {
namespace {

using nlohmann::ordered_json;
using simt::record::Kernel;

std::uint64_t count(const ordered_json& of, const char* name) {
  return of.at(name).get<std::uint64_t>();
}

/// Returns the counters that bounds are computed from.
Kernel counted_kernel(const ordered_json& json) {
  const ordered_json& totals = json.at("totals");
  const ordered_json& waits = json.at("waits");
  const ordered_json& longest = waits.at("longest");
  Kernel kernel;
  kernel.launches = count(json, "recorded_launches");
  kernel.blocks = count(json, "blocks");
  kernel.warps = count(json, "warps");
  kernel.distinct_load_bytes = count(json.at("bytes"), "global_distinct");
  const struct {
    const char* name;
    std::uint64_t simt::record::Counters::*member;
  } members[] = {{"global_load_requests", &simt::record::Counters::global_load_requests},
                 {"global_load_sectors", &simt::record::Counters::global_load_sectors},
                 {"global_store_requests", &simt::record::Counters::global_store_requests},
                 {"global_store_sectors", &simt::record::Counters::global_store_sectors},
                 {"shared_load_requests", &simt::record::Counters::shared_load_requests},
                 {"shared_store_requests", &simt::record::Counters::shared_store_requests},
                 {"shared_store_wavefronts", &simt::record::Counters::shared_store_wavefronts},
                 {"shared_atomic_requests", &simt::record::Counters::shared_atomic_requests},
                 {"shared_atomic_wavefronts", &simt::record::Counters::shared_atomic_wavefronts},
                 {"atomic_requests", &simt::record::Counters::atomic_requests},
                 {"atomic_sectors", &simt::record::Counters::atomic_sectors},
                 {"constant_requests", &simt::record::Counters::constant_requests},
                 {"texture_requests", &simt::record::Counters::texture_requests},
                 {"barriers", &simt::record::Counters::barriers}};
  for (const auto& [name, member] : members) kernel.totals.*member = count(totals, name);
  kernel.waits.lines = count(waits, "lines");
  kernel.waits.merged_load_wavefronts = count(waits, "merged_load_wavefronts");
  kernel.waits.merged_requests = count(waits, "merged_requests");
  kernel.waits.longest = {.memory = count(longest, "memory"),
                          .cache = count(longest, "cache"),
                          .shared = count(longest, "shared"),
                          .barriers = count(longest, "barriers"),
                          .exchanges = count(longest, "exchanges")};
  return kernel;
}

/// Adds operations to the work. Kinds of operations have different peaks; the pace becomes that of
/// their mixture.
void add_arithmetic(const ordered_json& kernel, const bench::Gpu& gpu, bench::CountedWork& work,
                    bench::GpuPace& pace) {
  const ordered_json& done = kernel.at("operations");
  if (done.is_null()) return;
  const auto number = [&](const char* name) { return done.at(name).get<double>(); };
  const auto rate = [&](const char* element) {
    return bench::gpu_ceiling(gpu, element, 0).operations_per_second;
  };
  const double products = kernel.at("totals").at("matrix_operations").get<double>();
  const double f64 = number("f64"), f32 = number("total") - f64;
  work.operations = f32 + f64 + products;
  const double seconds = f32 / rate("f32") + f64 / rate("f64") + products / rate("f16");
  if (seconds > 0) pace.operations_per_second = work.operations / seconds;
  // A multiplication and a following addition may fuse into one instruction.
  constexpr double lanes = 32;
  work.instructions +=
      (std::max(number("additions"), number("multiplications")) + number("divisions")) / lanes;
}

ordered_json bound_of_kernel(const ordered_json& kernel, const bench::Gpu& gpu) {
  if (kernel.at("recorded_launches") == 0) return {};
  bench::CountedWork work = work_of(counted_kernel(kernel));
  work.bytes += kernel.at("bytes").at("bulk").get<double>();
  bench::GpuPace pace = bench::pace_of(gpu);
  pace.bytes_per_second = bench::gpu_ceiling(gpu, "f32", 0).bytes_per_second;
  add_arithmetic(kernel, gpu, work, pace);
  const ordered_json& held = kernel.at("occupancy");
  if (!held.is_null()) work.blocks_per_sm = std::max(1.0, held.at("blocks").get<double>());
  const bench::Bound bound = bench::bound_of(work, pace, bench::GridSize::large);
  if (bound.total <= 0) return {};
  ordered_json roofs = ordered_json::object();
  for (std::size_t i = 0; i < bench::roof_count; ++i) {
    if (bound.seconds[i] <= 0) continue;
    roofs[std::string(to_string(static_cast<bench::Roof>(i)))] = bound.seconds[i];
  }
  return {{"gpu", gpu.name},
          {"seconds", bound.total},
          {"bound_by", std::string(to_string(bound.by))},
          {"roofs", roofs}};
}

}  // namespace

void add_bound(ordered_json& kernels, const bench::Gpu* gpu) {
  if (gpu == nullptr) return;
  for (ordered_json& kernel : kernels) kernel["bound"] = bound_of_kernel(kernel, *gpu);
}

}  // namespace rung::workbench
