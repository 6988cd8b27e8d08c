// SPDX-License-Identifier: Apache-2.0
// Matches devices to measured machines, and kernels to their rates.
#include "rung/core/rates.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "rung/core/error.hpp"
#include "rung/core/suggestion.hpp"

namespace rung {
namespace {

bool is_gpu(Backend backend) { return backend == Backend::cuda || backend == Backend::simt; }

/// Returns a distance between two CPUs, by vendor, vector width, family and model, in that order of
/// weight.
double unlike(const std::string& family, std::string_view other) {
  const auto words = [](std::string_view text) {
    std::istringstream stream{std::string(text)};
    std::string vendor;
    int numbers[3] = {};
    stream >> vendor >> numbers[0] >> numbers[1] >> numbers[2];
    return std::tuple(vendor, numbers[0], numbers[1], numbers[2]);
  };
  const auto [vendor, number, model, bits] = words(family);
  const auto [other_vendor, other_number, other_model, other_bits] = words(other);
  return (vendor != other_vendor ? 1000.0 : 0) + (bits != other_bits ? 400.0 : 0) +
         std::min(10 * std::abs(number - other_number), 300) +
         std::min(std::abs(model - other_model), 255) / 256.0;
}

/// Returns a distance between two GPUs, by generation, number of SMs and bandwidth.
double unlike(const DeviceInfo& info, const RatedMachine& machine) {
  const auto ratio = [](double a, double b) {
    return a > 0 && b > 0 ? std::abs(std::log(a / b)) : 1.0;
  };
  return std::abs(info.compute_capability - machine.compute_capability) +
         ratio(info.sms, machine.units) + ratio(info.bytes_per_second, machine.bytes_per_second);
}

double distance(Backend backend, const DeviceInfo& info, const RatedMachine& machine) {
  return is_gpu(backend) ? unlike(info, machine) : unlike(info.family, machine.device);
}

constexpr PathRates nominal_path{"", {{1e-6, 2e-6, 1.2, 1.2, 1.2, 1.5, 1e-6, 0.6e-6, 0, 0}}};
/// Rates of kernels of operators without measurements: nominal throughput and usual latencies.
constexpr KernelRates nominal{"", "", &nominal_path, 1};

const KernelRates* listed(const RatedMachine& machine, std::string_view op,
                          std::string_view kernel) {
  const auto before = [](const KernelRates& rates, const auto& name) {
    return std::tie(rates.op, rates.kernel) < name;
  };
  const auto name = std::tie(op, kernel);
  const auto found = std::lower_bound(machine.kernels.begin(), machine.kernels.end(), name, before);
  if (found == machine.kernels.end() || std::tie(found->op, found->kernel) != name) return nullptr;
  return &*found;
}

}  // namespace

int detail::match_machine(Backend backend, const DeviceInfo& info) {
  const std::span<const RatedMachine> all = rated_machines();
  const char* const requested = std::getenv("RUNG_RATES");
  if (requested != nullptr && *requested != '\0') {
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].name == requested && all[i].is_gpu == is_gpu(backend)) return static_cast<int>(i);
      names.push_back(all[i].name);
    }
    if (std::find(names.begin(), names.end(), requested) == names.end()) {
      throw Error(ErrorCode::invalid_argument, "RUNG_RATES: no machine '" + std::string(requested) +
                                                   "' was measured" +
                                                   did_you_mean(requested, names));
    }
  }
  int nearest = max_rated_machines;
  double least = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].is_gpu != is_gpu(backend)) continue;
    const double here = distance(backend, info, all[i]);
    if (nearest == max_rated_machines || here < least) {
      nearest = static_cast<int>(i);
      least = here;
    }
  }
  return nearest;
}

const RatedMachine* machine_of(const Context& context) {
  const int index = context.info().rated_index;
  return index == max_rated_machines ? nullptr : &rated_machines()[static_cast<std::size_t>(index)];
}

const KernelRates& find_rates(std::string_view op, std::string_view kernel,
                              const Context& context) {
  const RatedMachine* const own = machine_of(context);
  if (own == nullptr) return nominal;
  std::vector<const RatedMachine*> machines;
  for (const RatedMachine& machine : rated_machines()) {
    if (machine.is_gpu == own->is_gpu) machines.push_back(&machine);
  }
  std::stable_sort(machines.begin(), machines.end(), [&](const auto* a, const auto* b) {
    const auto rank = [&](const RatedMachine* machine) {
      return machine == own ? -1.0 : distance(context.backend(), context.info(), *machine);
    };
    return rank(a) < rank(b);
  });
  for (const std::string_view name : {kernel, std::string_view()}) {
    for (const RatedMachine* machine : machines) {
      if (const KernelRates* rates = listed(*machine, op, name)) return *rates;
    }
  }
  return nominal;
}

}  // namespace rung
