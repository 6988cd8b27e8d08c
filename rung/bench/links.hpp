// SPDX-License-Identifier: Apache-2.0
// Rates of the links between host and GPU and between GPUs, in one direction, without packet
// overhead. Sources: PCI Express Base Specifications 1.0 to 6.0; NVIDIA's data sheets of P100,
// V100, A100, H100 and B200 for NVLink.
#pragma once

#include <span>

namespace rung::bench {

struct PcieGeneration {
  int generation = 0;
  double transfers_per_second = 0;  // per lane, in bits (6.0: two bits per PAM4 symbol)
  // Line code: `payload` of each `coded` bits are data. From 6.0 on flits: 242 of 256 bytes (236 of
  // them for packets); the rest is CRC and FEC.
  int payload = 0;
  int coded = 0;

  [[nodiscard]] constexpr bool has_flits() const { return coded > 130; }
  /// Returns the rate of `lanes` lanes in one direction.
  [[nodiscard]] constexpr double bytes_per_second(double lanes) const {
    return lanes * transfers_per_second * payload / coded / 8;
  }
};

/// Returns all generations, in ascending order from 1.
std::span<const PcieGeneration> pcie_generations();
constexpr int newest_pcie_generation = 6;

struct NvlinkGeneration {
  int generation = 0;
  const char* gpu = "";
  int links = 0;
  double bytes_per_second_per_link = 0;  // one direction
};
std::span<const NvlinkGeneration> nvlink_generations();

}  // namespace rung::bench
