// SPDX-License-Identifier: Apache-2.0
// What `rung explain` knows of a rung on one problem: what it says of itself, what it declares to
// cost, and what the simulated GPU counted when it ran.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rung/bench/bound.hpp"
#include "rung/bench/occupancy.hpp"
#include "rung/bench/roofline.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/simt/record.hpp"
#include "rung/workbench/rung_source.hpp"

namespace rung::workbench {

/// A chip's ceilings.
struct Chip {
  std::string name;
  bench::Ceiling ceiling;
  bench::GpuPace pace;  // without rates of memory and arithmetic, which are the ceiling's
  const bench::Multiprocessor* multiprocessor = nullptr;  // of a GPU whose capability is known
  std::string remark;                                     // on its ceilings

  /// 90 for 9.0; 0: not known.
  [[nodiscard]] int capability() const {
    return multiprocessor != nullptr ? multiprocessor->capability : 0;
  }
};
struct ChipChoice {
  std::string gpu;                             // a published one, or "cpu"
  std::string bandwidth, peak;                 // given by hand, "" if not
  std::shared_ptr<const bench::Machine> here;  // this machine, once it was needed
};

/// One rung on one problem.
struct Explained {
  const RungInfo* rung = nullptr;
  Problem problem;
  RungHeader header;        // empty where the source is not here
  Cost compulsory;          // what any implementation must move and compute
  Cost declared;            // what this one says that it does; bytes 0: it says nothing
  double written = 0;       // the share of the compulsory bytes that is written
  std::string why_not_run;  // "" when it ran, and was counted
  std::vector<simt::record::Kernel> kernels;
  simt::record::Kernel total;  // of all kernels
  Chip chip;                   // that it is held against
  // The larger problem that the bound is of, if it is not `problem`: what it costs, and what was
  // counted with one extent after the other doubled.
  struct Doubled {
    double ratio = 1;  // of that extent, large over counted
    std::vector<simt::record::Kernel> kernels;
  };
  std::optional<Problem> at;
  Cost cost_at;
  std::vector<Doubled> doubled;

  bool refused = false;  // it does not take the problem, on whatever backend
  double gain = 0;       // how many times faster than the rung before, by the bounds; 0: not known

  [[nodiscard]] bool counted() const { return why_not_run.empty(); }
};

/// Runs the rung where its kernels can be counted, once. Not run: rungs of a CPU, and those that do
/// not take the problem. `instance` is the problem on the rung's device.
Explained explain_rung(const RungInfo& rung, const Problem& problem, Instance& instance);

/// Asks the rung of the same name on the simulated GPU whether it takes the problem, where the
/// rung's own device cannot be asked.
void ask_simulated(const AnyOperator& op, Explained& one);

/// The rung that this one says it improves on; else the one before it on its ladder; null: none.
const RungInfo* rung_before(const AnyOperator& op, const RungInfo& rung);

/// Bytes that crossed between SMs and L2: 32 for each sector of loads, stores and atomics, and what
/// bulk and tensor copies moved.
double counted_bytes(const simt::record::Counters& counters);

/// Returns the barriers and shuffles that the longest warp of a block passes one after another, the
/// mean of a launch's blocks, summed over the launches: the depth in steps, as far as threads wait
/// for each other within a block.
double depth_of(const simt::record::Kernel& kernel);

/// A counted number: its name in JSON, what it is called in a table.
struct Metric {
  const char* key;
  const char* label;
  double (*of)(const simt::record::Kernel& kernel);
  bool ratio = false;  // printed with decimals
  // Of a mean: what it is the mean of.
  const simt::record::Distribution& (*spread)(const simt::record::Kernel& kernel) = nullptr;
};
const std::vector<Metric>& metrics();

/// The chip, with the ceilings that apply to the problem.
Chip choose_chip(ChipChoice& choice, const Problem& problem, const Explained& one);

/// One point under the roof.
struct Position {
  const char* key;
  const char* label;
  Cost cost;
  [[nodiscard]] double intensity() const { return cost.operations / cost.bytes; }
};
/// Returns the positions by compulsory, declared and counted bytes: each sector once per launch,
/// then as often as it was requested.
std::vector<Position> positions(const Explained& one);
constexpr const char* each_sector_once = "distinct";
constexpr const char* counted_sectors = "counted";

/// Returns what was counted of a kernel that does not depend on the chip, without operations.
bench::CountedWork work_of(const simt::record::Kernel& kernel);
/// Returns the work of each kernel; of `at`, where there is one. Empty where nothing was counted.
std::vector<bench::CountedWork> counted_work(const Explained& one);
/// Returns the bound of the counted work: of `at` with the grid's waves, else as if the grid kept
/// all SMs busy. Empty where nothing was counted, or the chip's pace is not known.
std::optional<bench::Bound> bound_of(const Explained& one);

/// The least time under the roofs, and the roof that gives it.
struct AtBest {
  double seconds = 0;  // 0: no roof is known
  std::string bound;   // "memory" (on a CPU "L2", say) or a bench::Roof
  bool by_memory = false;
};
AtBest at_best(const Position& position, const Explained& one);
/// Returns it for the most telling position: each sector once, where it was counted.
AtBest at_best(const Explained& one);

/// Prints how a public call chooses its kernel on a backend; returns an exit code.
int explain_choice(const AnyOperator& op, Backend backend, const Problem& problem);

/// Everything about one rung, beside the one before where there is one.
std::string explain_text(const AnyOperator& op, const Explained& one, const Explained* before);
/// A ladder, a line per rung. A table for each of the rungs' problems, those of `problem` first.
std::string ladder_text(const AnyOperator& op, const Problem& problem,
                        const std::vector<Explained>& rungs);
std::string explain_json(const AnyOperator& op, const Problem& problem,
                         const std::vector<Explained>& rungs);

/// Kernels and their lines, as the recorder spells them.
nlohmann::json kernels_to_json(const std::vector<simt::record::Kernel>& kernels);

}  // namespace rung::workbench
