// SPDX-License-Identifier: Apache-2.0
// rung pcie: bandwidth of the link between host and GPU, by generation and lanes.
#include <fmt/format.h>

#include "rung/bench/links.hpp"
#include "rung/workbench/calculator.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

std::string nvlink_table() {
  Table table({{"NVLink"}, {"GPU"}, {"links", true}, {"per link", true}, {"together", true}});
  for (const bench::NvlinkGeneration& one : bench::nvlink_generations()) {
    table.add({std::to_string(one.generation), one.gpu, std::to_string(one.links),
               format_quantity(one.bytes_per_second_per_link, Unit::bytes_per_second),
               format_quantity(one.links * one.bytes_per_second_per_link, Unit::bytes_per_second)});
  }
  return table.text();
}

std::vector<Record> nvlink_records() {
  std::vector<Record> records;
  for (const bench::NvlinkGeneration& one : bench::nvlink_generations()) {
    records.push_back({{"generation", static_cast<double>(one.generation)},
                       {"gpu", std::string(one.gpu)},
                       {"links", static_cast<double>(one.links)},
                       {"bytes_per_second_per_link", one.bytes_per_second_per_link},
                       {"bytes_per_second", one.links * one.bytes_per_second_per_link}});
  }
  return records;
}

void compute(const Given& given, Sheet& sheet) {
  const bench::PcieGeneration& link =
      bench::pcie_generations()[static_cast<std::size_t>(given["generation"]) - 1];
  const double rate = link.bytes_per_second(given["lanes"]);
  sheet.let("transfers", link.transfers_per_second / 1e9, Unit::number, "GT/s");
  sheet.let("payload", link.payload);
  sheet.let("coded", link.coded);
  sheet.let("bits", 8, Unit::count, "8 bits");
  sheet.plain_result("line rate",
                     fmt::format("{:g} GT/s per lane", link.transfers_per_second / 1e9),
                     link.transfers_per_second);
  sheet.plain_result(
      "line code",
      link.has_flits() ? fmt::format("flits: {} of {} bytes are payload", link.payload, link.coded)
                       : fmt::format("{}b/{}b", link.payload, link.coded),
      static_cast<double>(link.payload) / link.coded);
  sheet.result("per lane", "{transfers} x {payload} / {coded} / {bits}", link.bytes_per_second(1),
               Unit::bytes_per_second);
  sheet.result("bandwidth", "{lanes} x {per lane}", rate, Unit::bytes_per_second);
  if (given.has("bytes")) {
    sheet.result("time", "{bytes} / {bandwidth}", given["bytes"] / rate, Unit::seconds);
  }
  sheet.remark("In one direction; both run at once. Headers of packets take part of it.");
  sheet.picture("Between GPUs, in one direction:\n" + nvlink_table());
  sheet.records("nvlink", nvlink_records());
  sheet.measured_by("rung bench transfer  # on a machine with a GPU");
}

CommandSpec::Action setup(Parser app) {
  app.purpose(
      "Computes how fast a PCI Express link is: lanes x transfers per second x the share of them "
      "that the line code leaves for data. NVLink's generations are printed beside it.");
  app.example("rung pcie --generation 3 --lanes 1,2,4,8,16", "a line per width");
  app.example("rung pcie --generation 3,4,5 --bytes 1GiB", "how long 1 GiB takes on 16 lanes");
  return Calculator(
             app, "pcie",
             {{.name = "--generation",
               .help = "1 to 6",
               .fallback = "4",
               .accepted = {.most = bench::newest_pcie_generation}},
              {.name = "--lanes", .help = "1 to 32", .fallback = "16", .accepted = {.most = 32}},
              {.name = "--bytes", .unit = Unit::bytes, .help = "to be copied", .optional = true}})
      .action(compute);
}

const Command self{{.name = "pcie",
                    .order = 87,
                    .summary = "how fast PCI Express and NVLink are, by generation and lanes",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
