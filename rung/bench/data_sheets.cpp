// SPDX-License-Identifier: Apache-2.0
// Peak rates from NVIDIA's data sheets for the H200 and H100 Tensor Core GPUs (SXM), A100 80GB
// Tensor Core GPU (SXM), L40S, L4, A40, A10, T4 and V100 (SXM2, 32 GB), and from the white papers
// of the Ada Lovelace architecture (RTX 4090) and of GA102 (RTX 3090). The RTX 4060's page states
// SMs, memory, L2 and clock; its rates are scaled from the RTX 4090's. L2 and SMs are from the
// architectures' white papers. f32 and f64 are the rates of the FMA units; tf32, f16 and bf16 those
// of the tensor cores with f32 sums.
#include "rung/bench/data_sheets.hpp"

#include <vector>

namespace rung::bench {
namespace {

struct Sheet {
  std::string_view key;
  std::string_view name;
  int capability;
  int multiprocessors;
  double l2_mib, memory_gb;
  double gigabytes_per_second;
  double f32, f64, tf32, f16;  // 10^12 operations per second; tf32 = 0: no tf32 and no bf16
};

constexpr Sheet sheets[] = {
    {"h200", "NVIDIA H200", 90, 132, 50, 141, 4800, 67, 34, 494.5, 989.5},
    {"h100", "NVIDIA H100", 90, 132, 50, 80, 3350, 67, 34, 494.5, 989.5},
    {"a100", "NVIDIA A100", 80, 108, 40, 80, 2039, 19.5, 9.7, 156, 312},
    {"l40s", "NVIDIA L40S", 89, 142, 96, 48, 864, 91.6, 1.43, 183, 362},
    {"l4", "NVIDIA L4", 89, 58, 48, 24, 300, 30.3, 0.473, 60, 121},
    {"a40", "NVIDIA A40", 86, 84, 6, 48, 696, 37.4, 0.585, 74.8, 149.7},
    {"a10", "NVIDIA A10", 86, 72, 6, 24, 600, 31.2, 0.488, 62.5, 125},
    {"v100", "NVIDIA V100", 70, 80, 6, 32, 900, 15.7, 7.8, 0, 125},
    {"t4", "NVIDIA T4", 75, 40, 4, 16, 320, 8.1, 0.253, 0, 65},
    {"rtx4090", "NVIDIA RTX 4090", 89, 128, 72, 24, 1008, 82.6, 1.29, 82.6, 165.2},
    {"rtx4060", "NVIDIA RTX 4060", 89, 24, 24, 8, 272, 15.1, 0.236, 15.1, 30.2},
    {"rtx3090", "NVIDIA RTX 3090", 86, 82, 6, 24, 936, 35.6, 0.556, 35.6, 71},
};

Gpu gpu_of(const Sheet& sheet) {
  Gpu gpu;
  gpu.name = sheet.name;
  gpu.compute_capability = sheet.capability;
  gpu.multiprocessors = sheet.multiprocessors;
  gpu.l2_bytes = sheet.l2_mib * (1 << 20);
  gpu.memory_bytes = sheet.memory_gb * 1e9;
  gpu.read_bytes_per_second = gpu.copy_bytes_per_second = sheet.gigabytes_per_second * 1e9;
  gpu.arithmetic = {
      {"f32", sheet.f32 * 1e12}, {"f64", sheet.f64 * 1e12}, {"f16", sheet.f16 * 1e12}};
  if (sheet.tf32 != 0) {
    gpu.arithmetic.push_back({"tf32", sheet.tf32 * 1e12});
    gpu.arithmetic.push_back({"bf16", sheet.f16 * 1e12});
  }
  return gpu;
}

}  // namespace

const Gpu* published_gpu(std::string_view name) {
  static const std::vector<Gpu> gpus = [] {
    std::vector<Gpu> all;
    for (const Sheet& sheet : sheets) all.push_back(gpu_of(sheet));
    return all;
  }();
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (sheets[i].key == name) return &gpus[i];
  }
  return nullptr;
}

std::vector<std::string> published_gpu_keys() {
  std::vector<std::string> keys;
  for (const Sheet& sheet : sheets) keys.emplace_back(sheet.key);
  return keys;
}

std::string published_gpu_names() {
  std::string names;
  for (const Sheet& sheet : sheets) names += (names.empty() ? "" : ", ") + std::string(sheet.key);
  return names;
}

}  // namespace rung::bench
