// SPDX-License-Identifier: Apache-2.0
// Published rates of PCI Express and NVLink.
#include "rung/bench/links.hpp"

namespace rung::bench {
namespace {

constexpr PcieGeneration pcie[] = {
    {1, 2.5e9, 8, 10},   {2, 5e9, 8, 10},     {3, 8e9, 128, 130},
    {4, 16e9, 128, 130}, {5, 32e9, 128, 130}, {6, 64e9, 242, 256},
};
static_assert(pcie[newest_pcie_generation - 1].generation == newest_pcie_generation);

constexpr NvlinkGeneration nvlink[] = {
    {1, "P100", 4, 20e9},  {2, "V100", 6, 25e9},  {3, "A100", 12, 25e9},
    {4, "H100", 18, 25e9}, {5, "B200", 18, 50e9},
};

}  // namespace

std::span<const PcieGeneration> pcie_generations() { return pcie; }
std::span<const NvlinkGeneration> nvlink_generations() { return nvlink; }

}  // namespace rung::bench
