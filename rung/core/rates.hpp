// SPDX-License-Identifier: Apache-2.0
// Measured rates of kernels, compiled in from results/MACHINE/rates/OPERATOR.json, and selection of
// the machine whose rates a context uses.
#pragma once

#include <span>
#include <string_view>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/work.hpp"

namespace rung {

/// Rates of a kernel for one rates key (Work::path).
struct PathRates {
  std::string_view path;  // "": every key that is not listed
  Rates rates;
};

struct KernelRates {
  std::string_view op;
  std::string_view kernel;  // "": every kernel of the operator that is not listed
  const PathRates* paths;
  int count;

  /// Returns the rates for a key, else the default ones.
  [[nodiscard]] const Rates& operator()(std::string_view path) const {
    for (int i = 0; i < count; ++i) {
      if (paths[i].path == path) return paths[i].rates;
    }
    return paths[0].rates;
  }
};

/// Accuracy of the choice among an operator's rungs by fitted rates.
struct Fit {
  std::string_view op;
  std::string_view date;
  int problems;
  double mean, worst;  // least time / time of the chosen kernel: geometric mean, minimum
  double held_out;     // `mean` over problems that were not used for fitting
};

/// A measured machine.
struct RatedMachine {
  std::string_view name;  // its folder in results/
  bool is_gpu;
  std::string_view device;               // DeviceInfo::name of a GPU, DeviceInfo::family of a CPU
  int compute_capability;                // of a GPU
  int units;                             // SMs, or threads used
  double bytes_per_second;               // nominal memory bandwidth of a GPU
  std::span<const KernelRates> kernels;  // sorted by operator and name
  std::span<const Fit> fits;
};

RUNG_API std::span<const RatedMachine> rated_machines();

/// Returns the machine whose rates a context uses: the one that RUNG_RATES names, else the one most
/// similar to the context's device (compute capability, SMs and memory bandwidth of a GPU; vendor,
/// family and vector width of a CPU). Null if no machine of its kind was measured.
RUNG_API const RatedMachine* machine_of(const Context& context);

/// Returns a kernel's rates on the context's machine, else on the most similar machine that lists
/// the kernel, else the operator's default rates, else nominal rates.
RUNG_API const KernelRates& find_rates(std::string_view op, std::string_view kernel,
                                       const Context& context);

namespace detail {
/// Returns the index of the machine whose rates a device uses, max_rated_machines if there is none.
/// Called once per device. Throws Error(invalid_argument) if RUNG_RATES names an unknown machine.
RUNG_API int match_machine(Backend backend, const DeviceInfo& info);

/// Rates of one kernel, looked up once per machine; thread-safe.
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
