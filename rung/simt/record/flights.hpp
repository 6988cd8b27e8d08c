// SPDX-License-Identifier: Apache-2.0
// Bytes that asynchronous copies read or write until their completion is waited for. Internal to
// simt/record.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/simt/record/vector_clock.hpp"

namespace rung::simt::record {

/// Bytes that a bulk store reads or writes until its thread has waited for it, or that a bulk load
/// reads until a wait for its mbarrier.
struct Flight {
  std::uint32_t thread = 0;  // index of the issuing thread in the block
  std::uint32_t number = 0;  // number among the thread's stores, from 1
  std::uint32_t waited = 0;  // number of the wait that completed it; 0: in flight
  std::uint32_t copy = 0;    // number of the bulk load in the block; 0: a store
  bool writes = false;
  std::uintptr_t site = 0;
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  // Clocks that the thread had acquired at the issue, from other warps and from lanes of its own
  // warp.
  Clocks known{};
  std::uint32_t synced = 0, told = 0;
};
/// Numbers of stores and waits that a thread has issued, and that the checks have processed so far.
struct FlightOrder {
  std::uint32_t issued = 0, waits = 0;
  std::uint32_t passed_issues = 0, passed_waits = 0;
};

/// Bytes that a cp.async may read until its thread has waited for it.
struct SourceRead {
  std::uintptr_t begin = 0;
  std::uint32_t bytes = 0;
  std::uint32_t thread = 0;
  std::uintptr_t site = 0;
};

}  // namespace rung::simt::record
