// SPDX-License-Identifier: Apache-2.0
// Data of `rung explain` about a rung on one problem: its header comment, its declared cost, and
// the counters of its run on the simulated GPU.
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

/// Ceilings of a chip.
struct Chip {
  std::string name;
  bench::Ceiling ceiling;
  bench::GpuPace pace;  // without memory and arithmetic rates, which are in the ceiling
  const bench::Multiprocessor* multiprocessor = nullptr;  // null: unknown, or not a GPU
  std::string remark;                                     // source of its ceilings

  /// Returns the compute capability: 90 for 9.0; 0: unknown.
  [[nodiscard]] int capability() const {
    return multiprocessor != nullptr ? multiprocessor->capability : 0;
  }
};
struct ChipChoice {
  std::string gpu;                             // name of a published GPU, or "cpu"
  std::string bandwidth, peak;                 // given on the command line; "" if not
  std::shared_ptr<const bench::Machine> here;  // this machine; null until it is needed
};

/// One rung on one problem.
struct Explained {
  const RungInfo* rung = nullptr;
  Problem problem;
  RungHeader header;        // empty if the source is not available
  Cost compulsory;          // bytes and operations of any implementation
  Cost declared;            // of this rung; bytes 0: not declared
  double written = 0;       // fraction of the compulsory bytes that is written
  std::string why_not_run;  // "" if it ran and was counted
  std::vector<simt::record::Kernel> kernels;
  simt::record::Kernel total;  // of all kernels
  Chip chip;                   // reference chip
  // If the bound is for a larger problem `at`: its cost, and the counters of runs on `problem` with
  // one extent doubled at a time.
  struct Doubled {
    double ratio = 1;  // of the extent: large over counted
    std::vector<simt::record::Kernel> kernels;
  };
  std::optional<Problem> at;
  Cost cost_at;
  std::vector<Doubled> doubled;

  bool refused = false;  // does not support the problem, on any backend
  double gain = 0;       // speedup over the previous rung, by the bounds; 0: unknown

  [[nodiscard]] bool counted() const { return why_not_run.empty(); }
};

/// Runs the rung once under the counters. Rungs of a CPU and rungs that do not support the problem
/// are not run. `instance` is the problem on the device of the rung.
Explained explain_rung(const RungInfo& rung, const Problem& problem, Instance& instance);

/// Checks whether the rung of the same name on the simulated GPU supports the problem; for rungs
/// whose own device is absent.
void check_simulated(const AnyOperator& op, Explained& one);

/// Returns the rung that this one improves on according to its header, else its predecessor on the
/// ladder; null: none.
const RungInfo* rung_before(const AnyOperator& op, const RungInfo& rung);

/// Returns the bytes moved between SMs and L2: 32 per sector of loads, stores and atomics, plus the
/// bytes of bulk and tensor copies.
double counted_bytes(const simt::record::Counters& counters);

/// Returns the barriers and shuffles on the longest path of a warp in a block: the mean over the
/// blocks of a launch, summed over launches. It is the depth in steps if the threads of a block
/// exchange data only at barriers and in shuffles.
double depth_of(const simt::record::Kernel& kernel);

/// A counted figure: its JSON key and its table title.
struct Metric {
  const char* key;
  const char* label;
  double (*of)(const simt::record::Kernel& kernel);
  bool ratio = false;  // printed with decimals
  // Distribution of which the figure is the mean; null: not a mean.
  const simt::record::Distribution& (*spread)(const simt::record::Kernel& kernel) = nullptr;
};
const std::vector<Metric>& metrics();

/// Returns the chip with the ceilings that apply to the problem.
Chip choose_chip(ChipChoice& choice, const Problem& problem, const Explained& one);

/// A position under the roofline.
struct Position {
  const char* key;
  const char* label;
  Cost cost;
  [[nodiscard]] double intensity() const { return cost.operations / cost.bytes; }
};
/// Returns the positions by compulsory, declared and counted bytes. Counted bytes have two
/// positions: one counts each sector once per launch, the other every request.
std::vector<Position> positions(const Explained& one);
constexpr const char* each_sector_once = "distinct";
constexpr const char* counted_sectors = "counted";

/// Returns the counted work of a kernel that does not depend on the chip, without operations.
bench::CountedWork work_of(const simt::record::Kernel& kernel);
/// Returns the work of each kernel, on the problem `at` if there is one. Empty if nothing was
/// counted.
std::vector<bench::CountedWork> counted_work(const Explained& one);
/// Returns the bound of the counted work: for the problem `at`, if there is one, with the waves of
/// its grid; else as if the grid kept all SMs busy. Empty if nothing was counted or the chip's pace
/// is unknown.
std::optional<bench::Bound> bound_of(const Explained& one);

/// Least time under the roofline, and the limiting roof.
struct AtBest {
  double seconds = 0;  // 0: no roof is known
  std::string bound;   // "memory" (on a CPU "L2", say) or a bench::Roof
  bool by_memory = false;
};
AtBest at_best(const Position& position, const Explained& one);
/// Returns the least time for the most accurate position: each sector once, if that was counted.
AtBest at_best(const Explained& one);

/// Prints how a public call chooses its kernel on a backend; returns an exit code.
int explain_choice(const AnyOperator& op, Backend backend, const Problem& problem);

/// Returns the full explanation of a rung, beside the previous one unless `before` is null.
std::string explain_text(const AnyOperator& op, const Explained& one, const Explained* before);
/// Returns a ladder, one line per rung, with a table per problem, `problem`'s first.
std::string ladder_text(const AnyOperator& op, const Problem& problem,
                        const std::vector<Explained>& rungs);
std::string explain_json(const AnyOperator& op, const Problem& problem,
                         const std::vector<Explained>& rungs);

/// Returns kernels and their lines in the recorder's JSON format.
nlohmann::json kernels_to_json(const std::vector<simt::record::Kernel>& kernels);

}  // namespace rung::workbench
