// SPDX-License-Identifier: Apache-2.0
// Sums of counters.
#include "rung/simt/record/counters.hpp"

namespace rung::simt::record {

Counters& Counters::operator+=(const Counters& other) {
  global_load_requests += other.global_load_requests;
  global_load_sectors += other.global_load_sectors;
  global_store_requests += other.global_store_requests;
  global_store_sectors += other.global_store_sectors;
  global_load_bytes += other.global_load_bytes;
  global_store_bytes += other.global_store_bytes;
  shared_load_requests += other.shared_load_requests;
  shared_load_wavefronts += other.shared_load_wavefronts;
  shared_store_requests += other.shared_store_requests;
  shared_store_wavefronts += other.shared_store_wavefronts;
  shared_load_conflicts += other.shared_load_conflicts;
  shared_store_conflicts += other.shared_store_conflicts;
  shared_load_bytes += other.shared_load_bytes;
  shared_store_bytes += other.shared_store_bytes;
  atomic_requests += other.atomic_requests;
  atomic_sectors += other.atomic_sectors;
  atomic_bytes += other.atomic_bytes;
  shared_atomic_requests += other.shared_atomic_requests;
  shared_atomic_wavefronts += other.shared_atomic_wavefronts;
  shared_atomic_bytes += other.shared_atomic_bytes;
  constant_requests += other.constant_requests;
  constant_bytes += other.constant_bytes;
  texture_requests += other.texture_requests;
  local_requests += other.local_requests;
  local_bytes += other.local_bytes;
  bulk_copies += other.bulk_copies;
  bulk_load_bytes += other.bulk_load_bytes;
  bulk_store_bytes += other.bulk_store_bytes;
  matrix_products += other.matrix_products;
  matrix_operations += other.matrix_operations;
  active_lanes += other.active_lanes;
  barriers += other.barriers;
  basic_blocks += other.basic_blocks;
  basic_block_lanes += other.basic_block_lanes;
  branches += other.branches;
  divergent_branches += other.divergent_branches;
  constant_rounds += other.constant_rounds;
  global_load_used_bytes += other.global_load_used_bytes;
  global_store_used_bytes += other.global_store_used_bytes;
  atomic_rounds += other.atomic_rounds;
  shared_atomic_rounds += other.shared_atomic_rounds;
  l1_load_hits += other.l1_load_hits;
  l1_store_hits += other.l1_store_hits;
  l1_evictions += other.l1_evictions;
  l2_sectors += other.l2_sectors;
  l2_hits += other.l2_hits;
  l2_evictions += other.l2_evictions;
  dram_read_bytes += other.dram_read_bytes;
  dram_write_bytes += other.dram_write_bytes;
  return *this;
}

Arithmetic& Arithmetic::operator+=(const Arithmetic& other) {
  additions += other.additions;
  multiplications += other.multiplications;
  divisions += other.divisions;
  f64 += other.f64;
  functions += other.functions;
  integer += other.integer;
  return *this;
}

Arithmetic Arithmetic::operator*(std::uint64_t times) const {
  return {additions * times, multiplications * times, divisions * times,
          f64 * times,       functions * times,       integer * times};
}

}  // namespace rung::simt::record
