// SPDX-License-Identifier: Apache-2.0
// Writes the table of rates that the library compiles in, from results/MACHINE/rates/OPERATOR.json:
//   rates_table OUTPUT FILE...
// Called by the build.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "rung/core/work.hpp"

namespace {

using nlohmann::json;

constexpr std::string_view terms[] = {"start",      "launch", "memory", "middle", "near",
                                      "arithmetic", "wave",   "round",  "block",  "step"};
static_assert(std::size(terms) == rung::term_count);

struct Machine {
  json about;
  std::map<std::string, json> operators;
};

std::string quoted(const json& text) { return json(text.get<std::string>()).dump(); }

void write_machine(std::ostream& out, int index, const std::string& name, const Machine& machine) {
  std::ostringstream kernels, fits;
  for (const auto& [op, file] : machine.operators) {
    // Names in the order of bytes, as the library searches them: json sorts its objects so.
    for (const auto& [kernel, paths] : file.at("kernels").items()) {
      std::string variable = "paths_" + std::to_string(index) + "_" + op + "_" + kernel;
      out << "const PathRates " << variable << "[] = {\n";
      for (const auto& [path, rates] : paths.items()) {
        out << "    {" << json(path).dump() << ", {{";
        for (const std::string_view term : terms)
          out << rates.value(std::string(term), 0.0) << ", ";
        out << "}}},\n";
      }
      out << "};\n";
      kernels << "    {\"" << op << "\", \"" << kernel << "\", " << variable << ", " << paths.size()
              << "},\n";
    }
    const json& fit = file.at("fit");
    fits << "    {\"" << op << "\", " << quoted(fit.at("date")) << ", "
         << fit.at("problems").get<int>() << ", " << fit.at("mean").get<double>() << ", "
         << fit.at("worst").get<double>() << ", " << fit.at("held_out").get<double>() << "},\n";
  }
  out << "const KernelRates kernels_" << index << "[] = {\n" << kernels.str() << "};\n";
  out << "const Fit fits_" << index << "[] = {\n" << fits.str() << "};\n\n";
  (void)name;
}

}  // namespace

int main(int count, char** arguments) try {
  std::map<std::string, Machine> machines;
  for (int i = 2; i < count; ++i) {
    const std::filesystem::path path = arguments[i];
    std::ifstream stream(path);
    const json file = json::parse(stream);
    Machine& machine = machines[path.parent_path().parent_path().filename()];
    machine.about = file.at("machine");
    machine.operators[file.at("operator")] = file;
  }
  std::ofstream out(arguments[1]);
  out << "// Written by the build from results/*/rates; see tools/rates_table.cpp.\n"
         "#include \"rung/core/rates.hpp\"\n\nnamespace rung {\nnamespace {\n\n";
  int index = 0;
  for (const auto& [name, machine] : machines) write_machine(out, index++, name, machine);
  if (machines.empty()) out << "const std::span<const RatedMachine> machines;\n";
  if (!machines.empty()) out << "const RatedMachine machines[] = {\n";
  index = 0;
  for (const auto& [name, machine] : machines) {
    const json& about = machine.about;
    out << "    {" << json(name).dump() << ", " << (about.at("kind") == "gpu" ? "true" : "false")
        << ", " << quoted(about.at("device")) << ", " << about.value("compute_capability", 0)
        << ", " << about.value("units", 1) << ", " << about.value("bytes_per_second", 0.0)
        << ", kernels_" << index << ", fits_" << index << "},\n";
    ++index;
  }
  if (!machines.empty()) out << "};\n";
  out << "\n}  // namespace\n\nstd::span<const RatedMachine> rated_machines() { return machines; "
         "}\n\n"
         "}  // namespace rung\n";
  return out ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::fprintf(stderr, "rates_table: %s\n", error.what());
  return EXIT_FAILURE;
}
