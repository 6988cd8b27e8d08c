// SPDX-License-Identifier: Apache-2.0
// The rates of kernels on the machines that were measured, compiled in from
// results/MACHINE/rates/OPERATOR.json, and which of them a context uses.
#pragma once

#include <span>
#include <string_view>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/work.hpp"

namespace rung {

/// Rates of one path through a kernel.
struct PathRates {
  std::string_view path;  // "": of every path that is not listed
  Rates rates;
};

struct KernelRates {
  std::string_view op;
  std::string_view kernel;  // "": of every kernel of the operator that is not listed
  const PathRates* paths;
  int count;

  /// The rates of a path, else those of all.
  [[nodiscard]] const Rates& operator()(std::string_view path) const {
    for (int i = 0; i < count; ++i) {
      if (paths[i].path == path) return paths[i].rates;
    }
    return paths[0].rates;
  }
};

/// Quality of the choice by an operator's rates.
struct Fit {
  std::string_view op;
  std::string_view date;
  int problems;
  double mean, worst;  // seconds of the best kernel / those of the chosen one: geometric mean
  double held_out;     // the mean on problems that were left out of the fit
};

/// A machine that was measured.
struct RatedMachine {
  std::string_view name;  // its folder in results/
  bool is_gpu;
  std::string_view device;               // as DeviceInfo says
  int compute_capability;                // of a GPU
  int units;                             // SMs, or threads that were used
  double bytes_per_second;               // nominal, of a GPU's memory
  std::span<const KernelRates> kernels;  // by operator and name
  std::span<const Fit> fits;
};

RUNG_API std::span<const RatedMachine> rated_machines();

/// Returns the machine whose rates a context uses: the one that RUNG_RATES names, else the one that
/// is most like the context's device (compute capability, SMs and memory of a GPU; vendor, family
/// and vector width of a CPU). Null where no machine of its kind was measured. Throws
/// Error(invalid_argument) for a name that is none.
RUNG_API const RatedMachine* machine_of(const Context& context);

/// Returns the rates of a kernel on a machine, else on the most similar one that has them, else
/// those of the operator, else nominal ones.
RUNG_API const KernelRates& find_rates(std::string_view op, std::string_view kernel,
                                       const Context& context);

namespace detail {
/// Returns the index of the machine whose rates a device uses, max_rated_machines for none; a
/// context asks once per device.
RUNG_API int match_machine(Backend backend, const DeviceInfo& info);

/// The rates of one kernel, looked up once per machine; any thread may ask.
class RUNG_API RatesCache {
 public:
  const KernelRates& get(std::string_view op, std::string_view kernel,
                         const Context& context) const {
    const KernelRates*& slot = found_[context.info().rated_index];
    const KernelRates* known = __atomic_load_n(&slot, __ATOMIC_ACQUIRE);
    if (known == nullptr) {
      known = &find_rates(op, kernel, context);
      __atomic_store_n(&slot, known, __ATOMIC_RELEASE);
    }
    return *known;
  }

 private:
  mutable const KernelRates* found_[max_rated_machines + 1] = {};  // the last: of no machine
};
}  // namespace detail

}  // namespace rung
