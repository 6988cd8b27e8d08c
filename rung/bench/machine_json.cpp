// SPDX-License-Identifier: Apache-2.0
// A machine as JSON, and the file in which it is remembered.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "rung/bench/machine.hpp"
#include "rung/core/error.hpp"
#include "rung/core/file_writer.hpp"

namespace rung::bench {

// One list of members for both directions; found by the JSON library through their arguments.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ArithmeticRate, isa, element, threads, operations_per_second)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BandwidthRate, level, access, threads, bytes, bytes_per_second)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuRate, element, operations_per_second)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Gpu, name, compute_capability, multiprocessors, l2_bytes,
                                   memory_bytes, read_bytes_per_second, copy_bytes_per_second,
                                   arithmetic)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Machine, cpu, cores, isa, l1_bytes, l2_bytes, l3_bytes,
                                   memory_bytes, gpus, compiler, version, date, noise, arithmetic,
                                   bandwidth)

namespace {

namespace fs = std::filesystem;

/// Whether ceilings measured on `known` hold on `here`.
bool same_machine(const Machine& known, const Machine& here) {
  if (known.gpus.size() != here.gpus.size()) return false;
  for (std::size_t i = 0; i < here.gpus.size(); ++i) {
    if (known.gpus[i].name != here.gpus[i].name) return false;
  }
  return known.cpu == here.cpu && known.cores == here.cores && known.isa == here.isa &&
         known.version == here.version && known.compiler == here.compiler;
}

/// What is known of this machine outlives the process, unless it cannot be written: then it is
/// measured again.
void store(const Machine& machine, const fs::path& path) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  try {
    write_file(path.string(), machine_to_json(machine) + '\n');
  } catch (const Error& error) {
    fmt::print(stderr, "rung: the measured rates are not remembered: {}\n", error.what());
  }
}

/// Nothing when the text is damaged: then the machine is measured anew, and it is written over.
std::optional<Machine> remembered(const std::string& text) {
  try {
    return machine_from_json(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::string machine_to_json(const Machine& machine) { return nlohmann::json(machine).dump(2); }

Machine machine_from_json(const std::string& text) {
  try {
    return nlohmann::json::parse(text).get<Machine>();
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::io, fmt::format("not the JSON of a machine: {}", error.what()));
  }
}

std::string machine_cache_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::string(cache) + "/rung/machine.json";
  const char* home = std::getenv("HOME");
  const std::string base = home != nullptr && *home != '\0' ? home : "/tmp";
  return base + "/.cache/rung/machine.json";
}

Machine known_machine(bool refresh, const MachineProgress& progress,
                      void (*measure)(Machine&, const MachineProgress&)) {
  Machine machine = describe_machine();
  const fs::path path = machine_cache_path();
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::optional<Machine> known = remembered(text.str());
  if (known && !same_machine(*known, machine)) known.reset();
  if (known && !refresh) return *known;

  measure(machine, progress);
  if (machine.noisy()) {
    Machine again = machine;
    measure(again, progress);
    if (again.noise < machine.noise) machine = again;
  }
  if (!machine.noisy() || !known || known->noisy()) store(machine, path);
  return machine;
}

}  // namespace rung::bench
