// SPDX-License-Identifier: Apache-2.0
// Conversion of a machine to and from JSON, and its cache file.
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "rung/bench/json_text.hpp"
#include "rung/bench/machine.hpp"
#include "rung/core/error.hpp"
#include "rung/core/text.hpp"
#include "rung/harness/file_writer.hpp"

namespace rung::bench {

// Member lists for both directions; the JSON library finds the functions by argument-dependent
// lookup.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ArithmeticRate, isa, element, threads, operations_per_second)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BandwidthRate, level, access, threads, bytes, bytes_per_second)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LatencyRate, level, bytes, seconds, cycles)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AtomicRate, target, threads, operations_per_second)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LinkRate, memory, direction, bytes_per_second, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuRate, element, operations_per_second)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Gpu, name, compute_capability, multiprocessors, l2_bytes,
                                   memory_bytes, read_bytes_per_second, copy_bytes_per_second,
                                   arithmetic, latencies, atomics, link)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Machine, cpu, cores, isa, l1_bytes, l2_bytes, l3_bytes,
                                   memory_bytes, gpus, compiler, version, date, noise, arithmetic,
                                   bandwidth, latencies, atomics)

namespace {

namespace fs = std::filesystem;

/// Returns whether ceilings measured on `known` apply to `here`.
bool same_machine(const Machine& known, const Machine& here) {
  if (known.gpus.size() != here.gpus.size()) return false;
  for (std::size_t i = 0; i < here.gpus.size(); ++i) {
    if (known.gpus[i].name != here.gpus[i].name) return false;
  }
  return known.cpu == here.cpu && known.cores == here.cores && known.isa == here.isa &&
         known.version == here.version && known.compiler == here.compiler;
}

/// Writes measurements to the cache file for later processes; reports a failure on standard error.
void store(const Machine& machine, const fs::path& path) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  try {
    // A write to a FIFO would block or reach another process.
    if (fs::exists(path, failed) && !fs::is_regular_file(path, failed)) {
      throw Error(ErrorCode::io, path.string() + ": it is no file");
    }
    write_file(path.string(), machine_to_json(machine) + '\n');
  } catch (const Error& error) {
    fmt::print(stderr, "rung: the measured rates are not remembered: {}\n",
               printable(error.what()));
  }
}

bool is_rate(double rate) { return std::isfinite(rate) && rate > 0; }

bool plausible(const std::vector<LatencyRate>& latencies, const std::vector<AtomicRate>& atomics) {
  bool good = true;
  for (const LatencyRate& one : latencies) good = good && is_rate(one.seconds) && one.cycles >= 0;
  for (const AtomicRate& one : atomics) good = good && is_rate(one.operations_per_second);
  return good;
}

/// Returns why a machine's JSON is not a plausible measurement; "" if it is.
std::string implausible(const Machine& machine) {
  if (machine.arithmetic.empty() || machine.bandwidth.empty()) return "a list of rates is empty";
  if (!std::isfinite(machine.noise) || machine.noise < 0 || machine.cores < 1) {
    return "its noise or its number of cores is none";
  }
  bool good = true;
  for (const ArithmeticRate& one : machine.arithmetic) {
    good = good && is_rate(one.operations_per_second) && one.threads > 0;
  }
  for (const BandwidthRate& one : machine.bandwidth) {
    good = good && is_rate(one.bytes_per_second) && is_rate(one.bytes) && one.threads > 0;
  }
  good = good && plausible(machine.latencies, machine.atomics);
  for (const Gpu& gpu : machine.gpus) {
    good = good && plausible(gpu.latencies, gpu.atomics);
    for (const LinkRate& one : gpu.link)
      good = good && is_rate(one.bytes_per_second) && is_rate(one.seconds);
    good = good && gpu.read_bytes_per_second >= 0 && gpu.copy_bytes_per_second >= 0;
    for (const GpuRate& one : gpu.arithmetic) good = good && is_rate(one.operations_per_second);
  }
  return good ? "" : "a rate is no positive number";
}

/// Returns the machine in the file, or nullopt if there is none. A damaged file is reported, and
/// the machine is measured again and the file overwritten.
std::optional<Machine> remembered(const fs::path& path) {
  constexpr std::uintmax_t max_bytes = std::uintmax_t{1} << 20;  // typical size: 10 KiB
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (status.type() == fs::file_type::not_found) return std::nullopt;
  std::string damage;
  if (status.type() != fs::file_type::regular) {
    damage = failed ? failed.message() : "it is no file";  // opening a FIFO would block
  } else if (fs::file_size(path, failed) > max_bytes) {
    damage = "it is longer than 1 MiB";
  } else {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    try {
      Machine machine = machine_from_json(text.str());
      damage = implausible(machine);
      if (damage.empty()) return machine;
    } catch (const Error& error) {
      damage = error.what();
    }
  }
  fmt::print(stderr, "rung: what {} remembers of this machine is damaged, and measured again: {}\n",
             path.string(), printable(damage));
  return std::nullopt;
}

}  // namespace

std::string machine_to_json(const Machine& machine) { return nlohmann::json(machine).dump(2); }

Machine machine_from_json(const std::string& text) {
  try {
    nlohmann::json machine = nlohmann::json::parse(text);
    // A file of ceilings only, without the results of measure_latencies().
    const auto add_lists = [](nlohmann::json& to, std::initializer_list<const char*> names) {
      for (const char* name : names) {
        if (!to.contains(name)) to[name] = nlohmann::json::array();
      }
    };
    add_lists(machine, {"latencies", "atomics"});
    for (nlohmann::json& gpu : machine.at("gpus")) {
      add_lists(gpu, {"latencies", "atomics", "link"});
    }
    return machine.get<Machine>();
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::io, json_fault(error, text, "rung machine"));
  }
}

std::string machine_cache_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::string(cache) + "/rung/machine.json";
  const char* home = std::getenv("HOME");
  const std::string base = home != nullptr && *home != '\0' ? home : "/tmp";
  return base + "/.cache/rung/machine.json";
}

std::optional<Machine> remembered_machine() {
  std::optional<Machine> known = remembered(machine_cache_path());
  if (known && !same_machine(*known, describe_machine())) known.reset();
  return known;
}

Machine known_machine(bool refresh, const MachineProgress& progress,
                      void (*measure)(Machine&, const MachineProgress&)) {
  std::optional<Machine> known = remembered_machine();
  if (known && !refresh) return *known;
  Machine machine = describe_machine();
  const fs::path path = machine_cache_path();

  measure(machine, progress);
  if (machine.noisy()) {
    Machine again = machine;
    measure(again, progress);
    if (again.noise < machine.noise) machine = std::move(again);
  }
  if (!machine.noisy() || !known || known->noisy()) store(machine, path);
  return machine;
}

Machine known_machine_with_latencies(bool refresh, const MachineProgress& progress) {
  Machine machine = known_machine(refresh, progress);
  if (refresh || machine.latencies.empty()) {
    measure_latencies(machine, progress);
    store(machine, machine_cache_path());
  }
  return machine;
}

}  // namespace rung::bench
