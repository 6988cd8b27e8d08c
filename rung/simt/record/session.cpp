// SPDX-License-Identifier: Apache-2.0
// Start, end and results of a session.
#include "rung/simt/record/session.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "rung/core/error.hpp"
#include "rung/simt/record/arithmetic.hpp"
#include "rung/simt/record/finding_text.hpp"
#include "rung/simt/record/registry.hpp"
#include "rung/simt/record/source.hpp"

namespace rung::simt::record {

constinit std::atomic<unsigned> mode{0};

namespace {

/// Maximum number of reported findings.
constexpr std::size_t max_findings = 1000;

using Sites = std::unordered_map<std::uintptr_t, SiteCount>;

/// Counts of a kernel, keyed by code address. They are mapped to source lines once, at the end of
/// the session, because the lookup is slow.
struct Counted {
  Kernel kernel;
  Sites sites;
  std::vector<Sites> each;  // counts of the listed launches
};

struct Session {
  std::mutex mutex;
  Options options;
  ThreadOrder order_before;
  Report report;
  std::vector<Counted> counted;
  std::unordered_map<const void*, std::size_t> kernels;  // by code address
  std::atomic<std::uint64_t> added = 0;                  // number of findings, with repetitions
};
Session& session() {
  static Session& one = *new Session;
  return one;
}

/// Returns true for equal findings, regardless of the order of the sides of a race or a divergent
/// barrier.
bool same(const Finding& a, const Finding& b) {
  if (a.kind != b.kind || a.space != b.space) return false;
  const auto here = [](const Finding& f) { return std::tie(f.file, f.line); };
  const auto there = [](const Finding& f) { return std::tie(f.other_file, f.other_line); };
  const bool two_sided = a.kind == Kind::race || a.kind == Kind::barrier;
  if (two_sided && here(a) == there(b) && there(a) == here(b)) return a.line != 0;
  return here(a) == here(b) && there(a) == there(b) && (a.line != 0 || a.message == b.message);
}

std::uint64_t volume(const dialect::dim3& extent) {
  return std::uint64_t{extent.x} * extent.y * extent.z;
}

/// Returns the counters of the branch that ends a basic block; zeros if the block has one
/// successor.
Counters branch_of(const SiteCount& count, bool both_ways) {
  Counters branch;
  branch.branches = both_ways ? count.ways : 0;
  branch.divergent_branches = both_ways ? count.partings : 0;
  return branch;
}

/// Returns the source location of the branch that ends `block`, usually just before the next block.
const Source& source_of_branch(std::uintptr_t block, const std::set<std::uintptr_t>& blocks) {
  const Source& begin = source_of(block);
  const auto next = blocks.upper_bound(block);
  constexpr std::uintptr_t call_bytes = 5;  // size of the hook's call, which precedes a site
  constexpr std::uintptr_t far = 4096;      // a block farther away is probably another function's
  if (next == blocks.end() || *next - block > far) return begin;
  const Source& end = source_of(*next - call_bytes);
  return end.of_a_kernel && end.file == begin.file ? end : begin;
}

Visits visits_of(const Sites& sites) {
  Visits visits;
  for (const auto& [site, count] : sites) {
    if (count.counters.basic_block_lanes != 0) visits[site] = count.counters.basic_block_lanes;
  }
  return visits;
}

/// Adds the arithmetic. Requires the counts of all launches, which together cover the kernel's
/// code.
void add_arithmetic(Counted& counted, std::map<std::pair<std::string, int>, Line>& lines) {
  Kernel& kernel = counted.kernel;
  const Visits visits = visits_of(counted.sites);
  std::vector<std::uintptr_t> sites;
  for (const auto& [site, times] : visits) sites.push_back(site);
  const ControlFlow flow(std::move(sites));
  kernel.arithmetic_known = flow.known();
  if (!flow.known()) return;
  const ControlFlow::Result all = flow.run(visits);
  kernel.arithmetic_exact = all.exact;
  for (const ControlFlow::Run& one : all.runs) {
    Arithmetic sum = one.once * one.times;
    kernel.arithmetic += sum;
    sum.integer = 0;
    if (!sum.any()) continue;
    const Source& source = source_of(one.address + 1);
    if (!source.of_a_kernel) continue;
    Line& line = lines[{source.file, source.line}];
    line.file = source.file;
    line.line = source.line;
    line.arithmetic += sum;
  }
  for (std::size_t i = 0; i < counted.each.size(); ++i) {
    for (const ControlFlow::Run& one : flow.run(visits_of(counted.each[i])).runs) {
      kernel.each[i].arithmetic += one.once * one.times;
    }
  }
}

void add_lines(Counted& counted) {
  std::map<std::pair<std::string, int>, Line> lines;
  const auto line_of = [&](const Source& source) -> Line& {
    Line& line = lines[{source.file, source.line}];
    line.file = source.file;
    line.line = source.line;
    return line;
  };
  std::set<std::uintptr_t> blocks;
  for (const auto& [site, count] : counted.sites) {
    if (count.counters.basic_blocks != 0) blocks.insert(site);
  }
  for (const auto& [site, count] : counted.sites) {
    const Source& source = source_of(site);
    if (!source.of_a_kernel) continue;
    Line& line = line_of(source);
    line.counters += count.counters;
    line.exact &= count.exact;
    counted.kernel.totals += count.counters;
    if (!count.both_ways) continue;
    const Counters branch = branch_of(count, true);
    line_of(source_of_branch(site, blocks)).counters += branch;
    counted.kernel.totals += branch;
  }
  add_arithmetic(counted, lines);
  for (auto& [key, line] : lines) counted.kernel.lines.push_back(std::move(line));
  for (std::size_t i = 0; i < counted.each.size(); ++i) {
    for (const auto& [site, count] : counted.each[i]) {
      if (!source_of(site).of_a_kernel) continue;
      counted.kernel.each[i].totals += count.counters;
      // Only the counts of all launches show whether a block ends in a branch.
      counted.kernel.each[i].totals += branch_of(count, counted.sites[site].both_ways);
    }
  }
}

/// Returns the counts of the launch's kernel. The caller must hold the lock.
Counted& counted_of(Session& one, const Launch& launch) {
  const void* const identity =
      launch.identity != nullptr ? launch.identity(launch.data) : launch.kernel;
  const auto [at, fresh] = one.kernels.try_emplace(identity, one.counted.size());
  if (fresh) {
    one.counted.emplace_back();
    one.counted.back().kernel.name = kernel_name(launch);
  }
  return one.counted[at->second];
}

/// Adds a launch's totals to its kernel's totals.
void add_work(Work& kernel, const Work& launch) {
  kernel.warps += launch.warps;
  kernel.divergent_warps += launch.divergent_warps;
  kernel.distinct_load_bytes += launch.distinct_load_bytes;
  kernel.distinct_store_bytes += launch.distinct_store_bytes;
  kernel.dirty_bytes += launch.dirty_bytes;
  kernel.waits += launch.waits;
  kernel.caches_known &= launch.caches_known;
  kernel.l1_bytes = launch.l1_bytes;
  kernel.visits += launch.visits;
  kernel.longest_block = std::max(kernel.longest_block, launch.longest_block);
  kernel.longest_warp = std::max(kernel.longest_warp, launch.longest_warp);
  kernel.block_imbalance = std::max(kernel.block_imbalance, launch.block_imbalance);
  kernel.warp_imbalance = std::max(kernel.warp_imbalance, launch.warp_imbalance);
}

/// Returns the session's results with source lines. The caller must hold the lock.
Report collect(Session& one) {
  for (Finding& finding : one.report.findings) {
    if (finding.kind == Kind::race && finding.advice.empty()) finding.advice = race_advice(finding);
  }
  for (Counted& counted : one.counted) {
    add_lines(counted);
    one.report.kernels.push_back(std::move(counted.kernel));
  }
  return std::exchange(one.report, {});
}

double over_mean(std::uint64_t most, std::uint64_t sum, std::uint64_t count) {
  const auto real = [](std::uint64_t number) { return static_cast<double>(number); };
  return sum == 0 ? 0 : real(most) * real(count) / real(sum);
}

}  // namespace

const Chip& modeled_chip() { return session().options.chip; }

std::uint64_t shared_bytes(const Launch& launch) {
  if (launch.shared_in_use == nullptr) return launch.shared_bytes;
  const std::size_t end = __atomic_load_n(launch.shared_in_use, __ATOMIC_RELAXED);
  const std::size_t gap = launch.shared_gap_end - launch.shared_gap_begin;
  return end > launch.shared_gap_end ? end - gap : end;
}

void add_unrecorded(const Launch& launch) {
  if ((mode.load(std::memory_order_relaxed) & counting) == 0) return;
  Session& one = session();
  const std::lock_guard lock(one.mutex);
  if (active()) ++counted_of(one, launch).kernel.unrecorded_launches;
}

std::uint64_t findings_added() { return session().added.load(std::memory_order_relaxed); }

void add_launch(const Launch& launch, Work work,
                const std::unordered_map<std::uintptr_t, SiteCount>& counts) {
  Session& one = session();
  const std::lock_guard lock(one.mutex);
  if (!active()) return;
  Counted& counted = counted_of(one, launch);
  Kernel& kernel = counted.kernel;
  const std::uint64_t shared = shared_bytes(launch);
  ++kernel.launches;
  kernel.blocks += volume(launch.grid);
  kernel.threads += volume(launch.grid) * volume(launch.block);
  kernel.block_threads = std::max(kernel.block_threads, volume(launch.block));
  kernel.shared_bytes = std::max(kernel.shared_bytes, shared);
  work.block_imbalance = over_mean(work.longest_block, work.visits, volume(launch.grid));
  work.warp_imbalance = over_mean(work.longest_warp, work.visits, work.warps);
  add_work(kernel, work);
  for (const auto& [site, count] : counts) {
    counted.sites[site] += count;
  }
  if (kernel.each.size() < Kernel::max_listed) {
    kernel.each.push_back({work, launch.grid, launch.block, shared});
    counted.each.push_back(counts);
  }
}

void begin(const Options& options) {
  Session& one = session();
  const std::lock_guard lock(one.mutex);
  if (active()) throw Error(ErrorCode::internal, "record::begin(): a session runs already");
  one.options = options;
  one.report = {};
  one.counted.clear();
  one.kernels.clear();
  one.order_before = thread_order();
  if (options.order) set_thread_order(*options.order);
  forget_history();
  mode = recording | (options.counters ? counting : 0u) | (options.checks ? checks : 0u);
}

Report end() {
  Session& one = session();
  if (!active()) throw Error(ErrorCode::internal, "record::end(): no session runs");
  if (one.options.leaks) {
    for (const Memory& memory : still_allocated()) {
      const Source allocated = source_of(memory);
      add({.kind = Kind::leak,
           .space = memory.space,
           .file = allocated.file,
           .line = allocated.line,
           .message =
               std::to_string(memory.bytes) + " bytes of " + memory.name + " were never freed",
           .advice = "free what was allocated, on every way out"});
    }
  }
  const std::lock_guard lock(one.mutex);
  mode = 0;
  if (one.options.order) set_thread_order(one.order_before);
  forget_history();
  return collect(one);
}

Report take(bool counters) {
  Session& one = session();
  const std::lock_guard lock(one.mutex);
  if (!active()) throw Error(ErrorCode::internal, "record::take(): no session runs");
  one.options.counters = counters;
  mode = recording | (counters ? counting : 0u) | (one.options.checks ? checks : 0u);
  Report report = collect(one);
  one.counted.clear();
  one.kernels.clear();
  return report;
}

bool active() { return (mode.load(std::memory_order_relaxed) & recording) != 0; }
bool checking() { return (mode.load(std::memory_order_relaxed) & checks) != 0; }

namespace {

std::atomic<Completer> completer{nullptr};
std::atomic<const LaunchSource*> source_of_launches{nullptr};

/// Replaces the source lines of a library's kernel by the program's call of the library.
void show_call(Finding& finding) {
  finding.file = finding.launch_file;
  finding.line = finding.launch_line;
  finding.message = "in " + finding.kernel + " " + finding.message;
  if (finding.kind != Kind::race) return;
  finding.other_file = finding.file;
  finding.other_line = finding.line;
  finding.advice = "pass " + finding.kernel + " no memory that it writes while it reads it";
}

/// Merges two equal findings: keeps the better example and the racers of the two findings.
void merge(Finding& known, Finding&& more) {
  // A launch may have the same race with the sides in either order.
  const bool reversed = known.line != more.line || known.file != more.file;
  const std::uint64_t times = known.times + (reversed ? 0 : more.times);
  Racers racers = known.racers;
  racers |= more.racers;
  const auto rank = [](const Racers& r) { return r.across_blocks ? 2 : r.across_warps ? 1 : 0; };
  if (rank(more.racers) > rank(known.racers)) known = std::move(more);
  known.times = times;
  known.racers = racers;
}

}  // namespace

void complete_findings(Completer given) { completer = given; }
void complete(const void* data, const Memory* memory, Finding& finding) {
  if (const Completer one = completer) one(data, memory, finding);
}

void complete_launches(const LaunchSource* source) { source_of_launches = source; }
const LaunchSource* launch_source() { return source_of_launches; }

void add(Finding finding) {
  if (!active()) return;
  if (finding.in_library) show_call(finding);
  Session& one = session();
  one.added.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(one.mutex);
  for (Finding& known : one.report.findings) {
    if (!same(known, finding)) continue;
    merge(known, std::move(finding));
    return;
  }
  if (one.report.findings.size() == max_findings) return;
  if (one.options.on_finding != nullptr) one.options.on_finding(finding);
  one.report.findings.push_back(std::move(finding));
}

void forget() {
  Session& one = session();
  const std::lock_guard lock(one.mutex);
  one.report = {};
  one.counted.clear();
  one.kernels.clear();
  expect_no_release();
}

std::vector<Finding> findings_so_far() {
  Session& one = session();
  const std::lock_guard lock(one.mutex);
  return one.report.findings;
}

}  // namespace rung::simt::record
